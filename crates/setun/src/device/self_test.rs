//! Whether a device computes what the definitions say, asked at any time.

use futures::future::{FutureExt, LocalBoxFuture};
use setun_cpu::{CpuBackend, CpuOptions};
use setun_engine::{DeviceReport, Error as EngineError, HeadType, SelfTest, SelfTester, Verdict};
use setun_model::{ModelError, sample};
use web_time::Instant;

use super::{DeviceOptions, load::Place};
#[cfg(feature = "gpu")]
use super::{
    GpuApi,
    gpu::{self, Wanted},
};
use crate::{error::Error, reader::Sketch};

/// Tests the devices of an engine by themselves: what they run goes on.
pub(crate) struct Tester {
    sketch: Sketch,
    options: DeviceOptions,
}

impl Tester {
    pub(crate) fn new(sketch: Sketch, options: DeviceOptions) -> Self {
        Self { sketch, options }
    }
}

impl SelfTester for Tester {
    fn test<'a>(
        &'a self,
        report: &'a DeviceReport,
        test: SelfTest,
    ) -> LocalBoxFuture<'a, Result<SelfTest, EngineError>> {
        let test = self_test(&self.sketch, &self.options, report, test);
        test.map(|test| Ok(test?)).boxed_local()
    }
}

async fn self_test(
    sketch: &Sketch,
    options: &DeviceOptions,
    report: &DeviceReport,
    mut test: SelfTest,
) -> Result<SelfTest, Error> {
    let begun = Instant::now();
    let place = Place::new(sketch, options.clone());
    for found in report.devices.iter().filter(|found| found.verdict == Verdict::Chosen) {
        let failure = if found.device == "cpu" {
            test_cpu(sketch, &place, &found.level).await?
        } else {
            test_gpu(sketch, &place, found.device).await?
        };
        if let Some(failure) = failure {
            let before = if test.passed { String::new() } else { test.reason + "; " };
            test.reason = format!("{before}{}: {failure}", found.device);
            test.passed = false;
        }
    }
    test.seconds = begun.elapsed().as_secs_f64();
    Ok(test)
}

/// One thread, as the others of a page may belong to the engine. The definitions equal themselves.
async fn test_cpu(sketch: &Sketch, place: &Place, level: &str) -> Result<Option<String>, Error> {
    let levels = setun_cpu::Level::available().into_iter();
    let Some(level) = levels.into_iter().find(|known| known.name() == level) else {
        return Ok(None);
    };
    let options = CpuOptions { level: Some(level), threads: Some(1) };
    let mut backend = CpuBackend::new(options)
        .map_err(|error| super::unavailable(level.name(), error.to_string()))?;
    let Sketch { config, layout, kinds } = sketch;
    let cases = sample::cases(layout, kinds, config.activation, place.cache(sketch));
    let choosing = sample::choosing(layout, kinds, config.activation, place.cache(sketch));
    let choosing = choosing.map_err(ModelError::from)?;
    for case in cases.map_err(ModelError::from)?.into_iter().chain([choosing]) {
        if let Err(difference) = case.compare(&mut backend).await {
            return Ok(Some(difference.to_string()));
        }
    }
    Ok(None)
}

#[cfg(feature = "gpu")]
async fn test_gpu(sketch: &Sketch, place: &Place, api: &str) -> Result<Option<String>, Error> {
    let Some(api) = GpuApi::ALL.into_iter().find(|known| known.name() == api) else {
        return Ok(None);
    };
    let wanted = Wanted { software: true, timed: false };
    // A screen may belong to another device that runs beside it.
    let place = match place.head {
        HeadType::Screened => Place { head: HeadType::Stored, ..place.clone() },
        _ => place.on_gpu(),
    };
    match gpu::open(api, sketch, &place, wanted).await {
        Ok(_) => Ok(None),
        Err(refusal) => Ok(Some(refusal.into_verdict(api)?.reason)),
    }
}

#[cfg(not(feature = "gpu"))]
#[expect(clippy::unused_async, reason = "with a GPU it waits")]
async fn test_gpu(_: &Sketch, _: &Place, api: &str) -> Result<Option<String>, Error> {
    Err(super::unavailable(api, "this build has no GPU".into()))
}
