//! Reports as a picture: a row for each policy, a block of rows for each number of replicas.

use std::fmt::Write as _;

use crate::report::Report;

const ROW: f64 = 24.0;
const HEAD: f64 = 52.0; // of a block: its title and those of its columns
const LEFT: f64 = 110.0;
const BAR: f64 = 100.0; // most of a bar
const WIDTH: f64 = 780.0;

/// Left edges of the columns.
const SHARE: f64 = LEFT;
const FIRST_TOKEN: f64 = 270.0;
const OPEN: f64 = 480.0;
const COMPUTED: f64 = 630.0;

/// Colours are readable on light and dark pages; where the reader prefers dark ones, text is light.
const STYLE: &str = "\
text{font:12px sans-serif;fill:#24292f}\
.t{font-weight:bold;font-size:14px}.h,.v{fill:#57606a}.v{font-size:11px}\
.a{fill:#2f81f7}.b{fill:#bf8700}.g{stroke:#8c959f;stroke-width:1}.l{stroke:#2da44e;stroke-width:3}\
.p{fill:#2da44e}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.h,.v{fill:#9da7b3}}";

/// Draws reports as SVG. Those of one number of replicas follow each other.
#[must_use]
pub fn plot(reports: &[Report]) -> String {
    let blocks: Vec<_> = reports.chunk_by(|one, next| one.replicas == next.replicas).collect();
    let scales = Scales::of(reports);
    let height: f64 = blocks.iter().map(|block| HEAD + ROW * float(block.len())).sum();
    let mut svg = String::new();
    let _ = write!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\" role=\"img\">\n<style>{STYLE}</style>\n"
    );
    let mut top = 0.0;
    for block in blocks {
        draw_head(&mut svg, top, block);
        for (number, report) in block.iter().enumerate() {
            draw_row(&mut svg, top + HEAD + ROW * float(number), report, &scales);
        }
        top += HEAD + ROW * float(block.len());
    }
    svg.push_str("</svg>\n");
    svg
}

/// What the ends of the bars stand for.
struct Scales {
    first: f64, // logarithms of the first token's times
    last: f64,
    imbalance: f64,
}

impl Scales {
    fn of(reports: &[Report]) -> Self {
        let (mut first, mut last, mut imbalance) = (f64::MAX, f64::MIN, 1.0_f64);
        for Report { first_token_ms, imbalance: found, .. } in reports {
            first = first.min(libm::log(first_token_ms.median.max(0.001)));
            last = last.max(libm::log(first_token_ms.p99.max(0.001)));
            imbalance = imbalance.max(found.open_requests).max(found.computed_tokens);
        }
        Self { first, last, imbalance }
    }

    /// The place of a time in its column.
    fn place(&self, milliseconds: f64) -> f64 {
        let log = libm::log(milliseconds.max(0.001));
        FIRST_TOKEN + BAR * (log - self.first) / (self.last - self.first).max(0.1)
    }
}

fn draw_head(svg: &mut String, top: f64, block: &[Report]) {
    let title = match block.first().map_or(0, |report| report.replicas) {
        1 => "1 replica".to_owned(),
        replicas => format!("{replicas} replicas"),
    };
    text(svg, "t", 4.0, top + 18.0, &title);
    let titles = [
        (SHARE, "cached share"),
        (FIRST_TOKEN, "first token: 50, 95, 99 %"),
        (OPEN, "open, max/mean"),
        (COMPUTED, "computed, max/mean"),
    ];
    for (left, title) in titles {
        text(svg, "h", left, top + 40.0, title);
    }
}

fn draw_row(svg: &mut String, top: f64, report: &Report, scales: &Scales) {
    let middle = top + ROW / 2.0;
    text(svg, "n", 4.0, middle + 4.0, report.policy);
    let share = format!("{:.1} %", 100.0 * report.cached_share);
    bar(svg, "a", SHARE, middle, report.cached_share, &share);
    draw_times(svg, middle, report, scales);
    let imbalances =
        [(OPEN, report.imbalance.open_requests), (COMPUTED, report.imbalance.computed_tokens)];
    for (left, imbalance) in imbalances {
        // Balanced replicas have a ratio of 1, and no bar.
        let length = (imbalance - 1.0) / (scales.imbalance - 1.0).max(0.1);
        bar(svg, "b", left, middle, length, &format!("{imbalance:.2}"));
    }
}

/// A line from the median to the last percent, with a point, a ring and a bar.
fn draw_times(svg: &mut String, middle: f64, report: &Report, scales: &Scales) {
    let times = report.first_token_ms;
    let [median, p95, p99] = [times.median, times.p95, times.p99].map(|time| scales.place(time));
    let (high, low) = (middle - 5.0, middle + 5.0);
    let _ = writeln!(
        svg,
        "<path class=\"g\" d=\"M{median:.1} {middle}H{p99:.1}\"/>\
         <path class=\"l\" d=\"M{p95:.1} {high}V{low}M{p99:.1} {high}V{low}\"/>\
         <circle class=\"p\" cx=\"{median:.1}\" cy=\"{middle}\" r=\"4\"/>"
    );
    let label = format!("{} – {} s", seconds(times.median), seconds(times.p99));
    text(svg, "v", p99 + 6.0, middle + 4.0, &label);
}

fn bar(svg: &mut String, class: &str, left: f64, middle: f64, share: f64, label: &str) {
    let (top, length) = (middle - 7.0, BAR * share.clamp(0.0, 1.0));
    let _ = writeln!(
        svg,
        "<rect class=\"{class}\" x=\"{left}\" y=\"{top}\" width=\"{length:.1}\" height=\"14\"/>"
    );
    text(svg, "v", left + length + 5.0, middle + 4.0, label);
}

fn text(svg: &mut String, class: &str, left: f64, base: f64, text: &str) {
    let _ = writeln!(svg, "<text class=\"{class}\" x=\"{left:.1}\" y=\"{base}\">{text}</text>");
}

/// Milliseconds as seconds with two digits that count.
fn seconds(milliseconds: f64) -> String {
    let seconds = milliseconds / 1000.0;
    match seconds {
        10.0.. => format!("{seconds:.0}"),
        1.0.. => format!("{seconds:.1}"),
        _ => format!("{seconds:.2}"),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a number of rows")]
fn float(count: usize) -> f64 {
    count as f64
}
