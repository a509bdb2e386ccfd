//! A name for a browser's adapter: many browsers describe none, but report its maker and family.

use js_sys::{Function, Object, Promise, Reflect};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;

/// `VENDOR ARCHITECTURE`, as far as they are reported, else `unknown`.
pub(super) async fn name() -> String {
    let info = adapter_info().await.unwrap_or_default();
    let word = |name| Reflect::get(&info, &JsValue::from_str(name)).ok()?.as_string();
    let words = ["vendor", "architecture"].map(|name| word(name).unwrap_or_default());
    match words.join(" ").trim() {
        "" => "unknown".to_owned(),
        name => name.to_owned(),
    }
}

async fn adapter_info() -> Result<JsValue, JsValue> {
    let get = |from: &JsValue, name| Reflect::get(from, &JsValue::from_str(name));
    let gpu = get(&get(&js_sys::global(), "navigator")?, "gpu")?;
    let options = Object::new();
    Reflect::set(&options, &"powerPreference".into(), &"high-performance".into())?;
    let request: Function = get(&gpu, "requestAdapter")?.dyn_into()?;
    let adapter: Promise = request.call1(&gpu, &options)?.dyn_into()?;
    get(&JsFuture::from(adapter).await?, "info")
}
