//! The report for people.

mod operations;

use serde_json::Value;

/// Most characters of a line.
const WIDTH: usize = 200;

/// The report as Markdown.
pub(super) fn of(report: &Value) -> String {
    let mut page = Page { report, text: "# GPU report\n".to_owned() };
    page.machine();
    page.self_test();
    page.limits();
    page.tests();
    page.speed();
    operations::write(&mut page);
    page.rest();
    page.text
}

struct Page<'a> {
    report: &'a Value,
    text: String,
}

impl Page<'_> {
    fn line(&mut self, line: &str) {
        let line = line.replace(['\n', '\r'], " ");
        let cut: String = line.chars().take(WIDTH - 1).collect();
        self.text += &cut;
        self.text += if cut.len() < line.len() { "…\n" } else { "\n" };
    }

    fn gap(&mut self) {
        self.text.push('\n');
    }

    fn part(&mut self, title: &str) {
        self.gap();
        self.line(&format!("## {title}"));
        self.gap();
    }

    /// Names of columns; those from the second on hold numbers where `numbers`.
    fn table(
        &mut self,
        columns: &[&str],
        numbers: bool,
        rows: impl IntoIterator<Item = Vec<String>>,
    ) {
        let row = |cells: Vec<String>| {
            let cells = cells.into_iter().map(|cell| cell.replace(['|', '\n'], " "));
            format!("| {} |", cells.collect::<Vec<_>>().join(" | "))
        };
        self.line(&row(columns.iter().map(|&name| name.to_owned()).collect()));
        let mark = |index: usize| if numbers && index > 0 { "---:" } else { "---" };
        let marks = (0..columns.len()).map(mark).collect::<Vec<_>>().join("|");
        self.line(&format!("|{marks}|"));
        for cells in rows {
            self.line(&row(cells));
        }
    }

    fn machine(&mut self) {
        let machine = &self.report["machine"];
        self.gap();
        let seconds = number(&self.report["seconds"], 0);
        let minutes = word(&self.report["minutes"]);
        self.line(&format!("It took {seconds} s of {minutes} minutes."));
        self.gap();
        self.line(&format!(
            "- System: {}, {}; {}, {} threads",
            word(&machine["os"]),
            word(&machine["architecture"]),
            word(&machine["cpu"]),
            word(&machine["threads"])
        ));
        match machine["nvidia"].as_array() {
            Some(lines) => lines.iter().for_each(|line| {
                self.line(&format!("- NVIDIA: {}", word(line)));
            }),
            None => self.line("- NVIDIA: nvidia-smi is not here"),
        }
        for device in list(&machine["devices"]).iter().filter(|device| device["device"] != "cpu") {
            let [api, level, note] = ["device", "level", "note"].map(|key| word(&device[key]));
            self.line(&format!("- {api}: {level} ({note})"));
        }
        for api in list(&self.report["missing"]) {
            self.line(&format!("- {}: no device", word(api)));
        }
    }

    fn self_test(&mut self) {
        self.part("Self-tests");
        let verdicts = list(&self.report["self_test"]);
        if verdicts.is_empty() {
            return self.line("Not measured.");
        }
        let keys = ["device", "level", "verdict", "reason"];
        let row = |found: &Value| keys.map(|key| word(&found[key])).to_vec();
        self.table(&keys, false, verdicts.iter().map(row));
    }

    fn limits(&mut self) {
        self.part("Limits");
        let limits = self.report["limits"].as_object();
        if limits.is_none_or(serde_json::Map::is_empty) {
            return self.line("No GPU.");
        }
        let row = |(api, found): (&String, &Value)| {
            vec![
                api.clone(),
                number(&found["copy_gb_per_second"], 1),
                number(&found["peak_tera_operations_per_second"], 3),
            ]
        };
        let rows: Vec<_> = limits.into_iter().flatten().map(row).collect();
        self.table(&["API", "copies, GB/s", "integer products, TOPS"], true, rows);
        self.gap();
        self.line("Copies: bytes read and written together. A multiply-add is two operations.");
    }

    fn tests(&mut self) {
        self.part("Tests");
        let tests = list(&self.report["tests"]);
        let row = |found: &Value| {
            let keys = ["program", "passed", "failed", "ignored"];
            let mut cells = keys.map(|key| word(&found[key])).to_vec();
            cells.extend([number(&found["seconds"], 1), word(&found["outcome"])]);
            cells
        };
        let columns = ["program", "passed", "failed", "ignored", "s", "outcome"];
        self.table(&columns, true, tests.iter().map(row));
        for found in tests {
            for line in list(&found["skipped"]) {
                self.gap();
                self.line(&format!("{}: {}", word(&found["program"]), word(line)));
            }
            let is_lost = found["program"] == "setun-tests-cuda_lost";
            let said = if is_lost { &found["said"] } else { &found["failures"] };
            if let Some(said) = said.as_str().filter(|said| !said.is_empty()) {
                self.gap();
                self.line(&format!("{}:", word(&found["program"])));
                self.gap();
                self.line("```text");
                said.lines().for_each(|line| self.line(line));
                self.text += "```\n";
            }
        }
        self.gap();
        self.line(
            "Every operation is compared with its definition by `gpu_parity` and `cuda` of setun-gpu.",
        );
        self.line(
            "That no result depends on the cut of a prompt is tested by `cuda` and `gpu` of setun-tests.",
        );
    }

    fn speed(&mut self) {
        self.part("Speed");
        let mut rows = vec![];
        for run in list(&self.report["speed"]) {
            let name = format!("{} {}", word(&run["api"]), word(&run["shape"]));
            if run["outcome"] != "ok" {
                let mut row = vec!["-".to_owned(); 8];
                row[0] = format!("{name}: {}", word(&run["outcome"]));
                rows.push(row);
            }
            for report in list(&run["reports"]) {
                rows.push(vec![
                    name.clone(),
                    word(&report["batch"]),
                    number(&report["prefill_tokens_per_second"], 1),
                    number(&report["decode_tokens_per_second"], 1),
                    number(&report["profile"]["decode"]["jobs_per_token"], 1),
                    number(&report["host_us_per_token"], 1),
                    word(&report["first_tokens_hash"]),
                    self.equality(run, report),
                ]);
            }
        }
        let columns = [
            "API and shape",
            "batch",
            "prefill tokens/s",
            "decode tokens/s",
            "launches a token",
            "host µs a token",
            "hash of the first sequence",
            "as the CPU's",
        ];
        self.table(&columns, true, rows);
        self.gap();
        self.line(
            "Host time: time of a decoded token less that of its operations, which are timed",
        );
        self.line("in a round of their own, one by one. It is below zero where a device's clock takes longer than the host.");
        self.line("A sequence has one hash in all batches. CUDA promises the CPU's tokens, others are near.");
        for run in
            list(&self.report["speed"]).iter().filter(|run| run["same_in_every_batch"] == false)
        {
            let (api, shape) = (word(&run["api"]), word(&run["shape"]));
            self.gap();
            self.line(&format!("**{api} {shape}: the first sequence depends on its batch.**"));
        }
    }

    fn equality(&self, run: &Value, report: &Value) -> String {
        let same = |cpu: &&Value| cpu["shape"] == run["shape"] && cpu["prompt"] == run["prompt"];
        let cpu = list(&self.report["cpu"]).iter().find(same);
        let hash = cpu.map(|cpu| &cpu["first_tokens_hash"]).filter(|hash| hash.is_string());
        hash.map_or("not measured".into(), |hash| {
            if *hash == report["first_tokens_hash"] { "equal".into() } else { "other".into() }
        })
    }

    fn rest(&mut self) {
        self.part("WebGPU");
        let webgpu = &self.report["webgpu"];
        self.line(&word(&webgpu["outcome"]));
        if webgpu["page"].is_object() {
            self.text += "\n```json\n";
            let page = serde_json::to_string_pretty(&webgpu["page"]).unwrap_or_default();
            page.lines().for_each(|line| self.line(line));
            self.text += "```\n";
        }
        self.part("Memory in use");
        let memory = &self.report["memory"];
        let side = |value: &Value| list(value).iter().map(word).collect::<Vec<_>>().join(", ");
        if memory["before"].is_array() {
            let (before, after) = (side(&memory["before"]), side(&memory["after"]));
            self.line(&format!("Before the first process {before}, after the last {after}."));
        } else {
            self.line("Not measured: nvidia-smi is not here.");
        }
        self.part("Not measured");
        let missed = list(&self.report["not_measured"]);
        if missed.is_empty() {
            self.line("Nothing is missing.");
        }
        for line in missed {
            self.line(&format!("- {}: {}", word(&line["what"]), word(&line["why"])));
        }
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn word(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    }
}

fn number(value: &Value, digits: usize) -> String {
    value.as_f64().map_or("-".to_owned(), |number| format!("{number:.digits$}"))
}

#[cfg(test)]
mod tests;
