//! A kernel as a pipeline.

use crate::kernel::{Access, Kernel, Language};

/// A compiled kernel, and how its arguments are bound.
pub(super) type Compiled = (wgpu::ComputePipeline, wgpu::BindGroupLayout);

pub(super) fn compile(device: &wgpu::Device, kernel: Kernel, language: Language) -> Compiled {
    let name = Some(kernel.shader().name);
    // A browser has a compiler of its own.
    let source = if cfg!(target_family = "wasm") {
        kernel.standard_source(language)
    } else {
        kernel.source(language)
    };
    let source = wgpu::ShaderSource::Wgsl(source.into());
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor { label: name, source });
    let entry = |binding, ty| wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset: false, min_binding_size: None },
        count: None,
    };
    let storage = |read_only| wgpu::BufferBindingType::Storage { read_only };
    let step = storage(kernel.step_access() == Access::Read);
    let fixed = [entry(0, wgpu::BufferBindingType::Uniform), entry(1, step)];
    let own = (2..).zip(kernel.accesses());
    let own = own.map(|(binding, &access)| entry(binding, storage(access == Access::Read)));
    let entries: Vec<_> = fixed.into_iter().chain(own).collect();
    let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
        label: name,
        entries: &entries,
    });
    let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: name,
        bind_group_layouts: &[Some(&layout)],
        immediate_size: 0,
    });
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: name,
        layout: Some(&pipeline_layout),
        module: &module,
        entry_point: Some("main"),
        compilation_options: wgpu::PipelineCompilationOptions::default(),
        cache: None,
    });
    (pipeline, layout)
}
