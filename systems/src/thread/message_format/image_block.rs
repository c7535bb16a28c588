//! Images in content blocks: each API has its own form, and refuses the others.

use crate::thread::raw_json::{RawObject, quoted};

/// The form of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ImageForm {
    /// Chat completions: `image_url` with an object.
    Chat,
    /// The Responses API: `input_image`.
    Responses,
    /// Anthropic: `image` with a `source`.
    Anthropic,
}

impl ImageForm {
    /// Returns an image of another API in this form; `None` if the block is not such an image.
    pub(super) fn converted(self, block: &RawObject<'_>) -> Option<String> {
        let (form, address) = address(block)?;
        if form == Some(self) {
            return None;
        }
        let address_json = quoted(&address);
        Some(match self {
            Self::Chat => {
                format!(r#"{{"type":"image_url","image_url":{{"url":{address_json}}}}}"#)
            }
            Self::Responses => format!(r#"{{"type":"input_image","image_url":{address_json}}}"#),
            Self::Anthropic => format!(r#"{{"type":"image","source":{}}}"#, source(&address)?),
        })
    }
}

/// The beginning of an address that contains its data.
const DATA: &str = "data:";

/// Returns the form of an image, `None` for that of MCP and for one that no API takes as it is; and
/// its address: a URL, which may contain the image.
fn address(block: &RawObject<'_>) -> Option<(Option<ImageForm>, String)> {
    match &*block.text("type")? {
        "image_url" => match block.object("image_url") {
            Some(image) => Some((Some(ImageForm::Chat), image.text("url")?.into_owned())),
            None => Some((None, block.text("image_url")?.into_owned())),
        },
        "input_image" => match block.object("image_url") {
            Some(image) => Some((None, image.text("url")?.into_owned())),
            None => Some((Some(ImageForm::Responses), block.text("image_url")?.into_owned())),
        },
        "image" => {
            let Some(source) = block.object("source") else {
                let url = within(&block.text("mimeType")?, &block.text("data")?);
                return Some((None, url));
            };
            if let Some(url) = source.text("url") {
                let is_web = !url.starts_with(DATA);
                return Some((is_web.then_some(ImageForm::Anthropic), url.into_owned()));
            }
            let (kind, data) = (source.text("media_type")?, source.text("data")?);
            let is_refused = kind == "image/jpg" || data.starts_with(DATA);
            Some(((!is_refused).then_some(ImageForm::Anthropic), within(&kind, &data)))
        }
        _ => None,
    }
}

/// Returns the address that contains these data, which may be such an address themselves.
fn within(kind: &str, data: &str) -> String {
    match data.rfind(DATA) {
        Some(at) => data[at..].to_owned(),
        None => format!("{DATA}{kind};base64,{data}"),
    }
}

/// Returns the source of an image in Anthropic's form; `None` if the address has another scheme.
fn source(address: &str) -> Option<String> {
    if let Some((kind, data)) = address.strip_prefix(DATA).and_then(|it| it.split_once(";base64,"))
    {
        let kind = if kind == "image/jpg" { "image/jpeg" } else { kind };
        let (kind, data) = (quoted(kind), quoted(data));
        return Some(format!(r#"{{"type":"base64","media_type":{kind},"data":{data}}}"#));
    }
    let is_web = address.starts_with("https://") || address.starts_with("http://");
    is_web.then(|| format!(r#"{{"type":"url","url":{}}}"#, quoted(address)))
}
