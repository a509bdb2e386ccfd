//! Self-test of the devices of an engine against the reference implementation.

use futures::future::{FutureExt, LocalBoxFuture};
use setun_cpu::Level;
use setun_engine::{DeviceKind, DeviceReport, Error as EngineError, SelfTest, SelfTester, Verdict};
use setun_model::{ModelError, sample};
use web_time::Instant;

use super::{DeviceOptions, GpuApi, cpu, placement::Placement};
#[cfg(feature = "gpu")]
use super::{
    HeadType,
    gpu::{self, Wanted},
};
use crate::{error::Error, header::ModelHeader};

/// Tests the devices of an engine by themselves: what they run goes on.
pub(crate) struct Tester {
    header: ModelHeader,
    options: DeviceOptions,
}

impl Tester {
    pub(crate) fn new(header: ModelHeader, options: DeviceOptions) -> Self {
        Self { header, options }
    }
}

impl SelfTester for Tester {
    fn test<'a>(
        &'a self,
        report: &'a DeviceReport,
        test: SelfTest,
    ) -> LocalBoxFuture<'a, Result<SelfTest, EngineError>> {
        let test = self_test(&self.header, &self.options, report, test);
        test.map(|test| Ok(test?)).boxed_local()
    }
}

async fn self_test(
    header: &ModelHeader,
    options: &DeviceOptions,
    report: &DeviceReport,
    mut test: SelfTest,
) -> Result<SelfTest, Error> {
    let begun = Instant::now();
    let placement = Placement::new(header, options.clone());
    for found in report.devices.iter().filter(|found| found.verdict == Verdict::Chosen) {
        let failure = match found.device {
            DeviceKind::Gpu(api) => test_gpu(header, &placement, api).await?,
            _ => test_cpu(header, &placement, &found.level).await?,
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
async fn test_cpu(
    header: &ModelHeader,
    placement: &Placement,
    level: &str,
) -> Result<Option<String>, Error> {
    let Some(level) = Level::from_name(level) else { return Ok(None) };
    let mut backend = cpu::backend(level, Some(1))?;
    let ModelHeader { config, layout, kinds, .. } = header;
    let cases = sample::cases(layout, kinds, config.activation, placement.cache(header));
    let choosing = sample::choosing(layout, kinds, config.activation, placement.cache(header));
    let choosing = choosing.map_err(ModelError::from)?;
    for case in cases.map_err(ModelError::from)?.into_iter().chain([choosing]) {
        if let Err(difference) = case.compare(&mut backend).await {
            return Ok(Some(difference.to_string()));
        }
    }
    Ok(None)
}

#[cfg(feature = "gpu")]
async fn test_gpu(
    header: &ModelHeader,
    placement: &Placement,
    api: GpuApi,
) -> Result<Option<String>, Error> {
    let wanted = Wanted { software: true, timed: false };
    // A screen may belong to another device that runs beside it.
    let placement = match placement.head {
        HeadType::Screened => Placement { head: HeadType::Stored, ..placement.clone() },
        _ => placement.on_gpu(),
    };
    match gpu::open(api, header, &placement, wanted).await {
        Ok(_) => Ok(None),
        Err(refusal) => Ok(Some(refusal.into_verdict(api)?.reason)),
    }
}

#[cfg(not(feature = "gpu"))]
#[expect(clippy::unused_async, reason = "with a GPU it waits")]
async fn test_gpu(_: &ModelHeader, _: &Placement, api: GpuApi) -> Result<Option<String>, Error> {
    Err(super::unavailable(api.name(), "this build has no GPU".into()))
}
