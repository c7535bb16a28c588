//! Images and files in content blocks: each API has its own form, and refuses the others.

use super::held_content::holds_content;
use crate::thread::raw_json::{RawObject, quoted};
use std::borrow::Cow;

/// The form of an image or a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ImageForm {
    /// Chat completions: `image_url` with an object, and `file`.
    Chat,
    /// The Responses API: `input_image` and `input_file`.
    Responses,
    /// Anthropic: `image` and `document` with a `source`.
    Anthropic,
}

impl ImageForm {
    /// Returns an image or a file of another API in this form; `None` if the block is not such a
    /// one, or this API does not take it.
    pub(super) fn converted(self, block: &RawObject<'_>) -> Option<String> {
        let Some((form, address)) = address(block) else { return self.converted_file(block) };
        if form == Some(self) {
            return None;
        }
        let address = with_shown_type(address);
        let address_json = quoted(&address);
        Some(match self {
            Self::Chat => {
                format!(r#"{{"type":"image_url","image_url":{{"url":{address_json}}}}}"#)
            }
            Self::Responses => format!(r#"{{"type":"input_image","image_url":{address_json}}}"#),
            Self::Anthropic => {
                let kept = |name: &str| Some(format!(r#","{name}":{}"#, block.get(name)?));
                let others: String =
                    ["cache_control", "transformations"].into_iter().filter_map(kept).collect();
                let source = source(&address)?;
                format!(r#"{{"type":"image","source":{source}{others}}}"#)
            }
        })
    }

    /// Returns a file of another API in this form.
    fn converted_file(self, block: &RawObject<'_>) -> Option<String> {
        let (form, name, address) = file(block)?;
        if form == Some(self) {
            return None;
        }
        let (name, data) = (quoted(name.as_deref().unwrap_or("document.pdf")), quoted(&address));
        let is_web = !address.starts_with(DATA);
        Some(match self {
            Self::Chat if is_web => return None,
            Self::Chat => {
                format!(r#"{{"type":"file","file":{{"filename":{name},"file_data":{data}}}}}"#)
            }
            Self::Responses if is_web => format!(r#"{{"type":"input_file","file_url":{data}}}"#),
            Self::Responses => {
                format!(r#"{{"type":"input_file","filename":{name},"file_data":{data}}}"#)
            }
            Self::Anthropic => {
                let is_taken = is_web || address.starts_with("data:application/pdf;");
                let source = source(&address).filter(|_| is_taken)?;
                format!(r#"{{"type":"document","source":{source},"title":{name}}}"#)
            }
        })
    }
}

/// Returns the form of a file, `None` for one that no API takes as it is; its name; and its
/// address: a URL, which may contain the file.
fn file(block: &RawObject<'_>) -> Option<(Option<ImageForm>, Option<String>, String)> {
    let text = |object: &RawObject<'_>, name: &str| object.text(name).map(Cow::into_owned);
    let (form, name, address) = match &*block.text("type")? {
        "file" | "binary" => match block.object("file") {
            Some(file) => {
                (Some(ImageForm::Chat), text(&file, "filename"), text(&file, "file_data")?)
            }
            None => {
                // The APIs take different other types of files.
                let is_pdf = |kind: Option<&str>| kind == Some("application/pdf");
                let (_, address) =
                    own_address(block).filter(|(kind, _)| is_pdf(kind.as_deref()))?;
                (None, text(block, "filename"), address)
            }
        },
        "input_file" => {
            let address = text(block, "file_data").or_else(|| text(block, "file_url"))?;
            (Some(ImageForm::Responses), text(block, "filename"), address)
        }
        "document" => {
            let source = block.object("source")?;
            let address = match text(&source, "url") {
                Some(url) => url,
                None if source.text("type")? == "base64" => {
                    within(&source.text("media_type")?, &source.text("data")?)
                }
                None => return None,
            };
            (Some(ImageForm::Anthropic), text(block, "title"), address)
        }
        _ => return None,
    };
    is_address(&address).then_some((form, name, address))
}

/// The beginning of an address that contains its data.
const DATA: &str = "data:";

fn is_address(given: &str) -> bool {
    given.starts_with(DATA) || is_web_address(given)
}

fn is_web_address(given: &str) -> bool {
    ["https://", "http://"].iter().any(|begin| given.starts_with(begin))
}

/// Returns the type, if it is known, and the address of an image or a file that has it, or its data
/// in base64, in a field of its own, as in MCP, LangChain, the AI SDK, Transformers and AG-UI.
/// `None` if another field says something, such as a caption, which would be lost.
fn own_address(block: &RawObject<'_>) -> Option<(Option<String>, String)> {
    const FIELDS: [&str; 6] = ["url", "data", "base64", "image", "source", "value"];
    const TYPES: [&str; 4] = ["mimeType", "mime_type", "mediaType", "media_type"];
    const LABELS: [&str; 13] = [
        "type", "id", "name", "filename", "detail", "source_type", "metadata", "extras",
        "annotations", "_meta", "providerOptions", "cache_control", "transformations",
    ];
    let (field, given) = FIELDS.iter().find_map(|name| Some((*name, block.text(name)?)))?;
    let is_said = |(name, json): (&str, &str)| {
        let is_label = name == field || TYPES.contains(&name) || LABELS.contains(&name);
        !is_label && json.starts_with(['"', '[', '{']) && holds_content(json)
    };
    if block.fields().any(is_said) {
        return None;
    }
    let named = TYPES.iter().find_map(|name| block.text(name)).map(Cow::into_owned);
    if is_address(&given) {
        let kind = named.or_else(|| Some(data_of(&given)?.0.to_owned()));
        return Some((kind, given.into_owned()));
    }
    // A path or an id of a file is no data.
    let is_break = |byte: u8| b"\r\n".contains(&byte);
    let is_data = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
    let is_base64 = !given.is_empty()
        && given.bytes().all(|byte| is_data(byte) || is_break(byte))
        && given.bytes().filter(|byte| !is_break(*byte)).count().is_multiple_of(4);
    let kind = named.or_else(|| shown_type(&given).map(str::to_owned)).filter(|_| is_base64)?;
    let address = within(&kind, &given);
    Some((Some(kind), address))
}

/// Returns the form of an image, `None` for one that no API takes as it is; and its address: a URL,
/// which may contain the image.
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
                return Some((None, own_address(block)?.1));
            };
            if let Some(url) = source.text("url") {
                let is_web = !url.starts_with(DATA);
                return Some((is_web.then_some(ImageForm::Anthropic), url.into_owned()));
            }
            let Some(data) = source.text("data") else {
                return Some((None, own_address(&source)?.1));
            };
            let given = source.text("media_type");
            let lower = given.as_deref().map(str::to_ascii_lowercase);
            let kind = shown_type(&data).or(lower.as_deref())?;
            let is_refused = given.as_deref() != Some(kind) || kind == "image/jpg";
            let is_refused = is_refused || data.starts_with(DATA);
            Some(((!is_refused).then_some(ImageForm::Anthropic), within(kind, &data)))
        }
        "file" | "binary" if block.object("file").is_none() => {
            let (kind, address) = own_address(block)?;
            kind?.starts_with("image/").then_some((None, address))
        }
        _ => None,
    }
}

/// Returns the type of an image that the beginning of its data in base64 shows. Anthropic and
/// Bedrock refuse an image that is named as another type.
pub(super) fn shown_type(data: &str) -> Option<&'static str> {
    let is_webp = || data.starts_with("UklGR") && data.get(12..16) == Some("RUJQ");
    match () {
        () if data.starts_with("/9j/") => Some("image/jpeg"),
        () if data.starts_with("iVBORw0KGgo") => Some("image/png"),
        () if data.starts_with("R0lGOD") => Some("image/gif"),
        () if is_webp() => Some("image/webp"),
        () => None,
    }
}

/// Returns the type and the data in base64 of an address that contains them, perhaps as another
/// such address.
pub(super) fn data_of(address: &str) -> Option<(&str, &str)> {
    let (before, last) = address.split_at(address.rfind(DATA)?);
    // A drawing that is written as text may contain an image.
    let is_whole = before.is_empty() || before.starts_with(DATA) && before.ends_with(";base64,");
    last[DATA.len()..].split_once(";base64,").filter(|_| is_whole)
}

/// Returns an address with the type that its data show, if it contains them.
fn with_shown_type(address: String) -> String {
    let shown = data_of(&address).and_then(|(_, data)| Some(within(shown_type(data)?, data)));
    shown.unwrap_or(address)
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
    if let Some((kind, data)) = data_of(address) {
        let kind = if kind == "image/jpg" { "image/jpeg" } else { kind };
        let (kind, data) = (quoted(kind), quoted(data));
        return Some(format!(r#"{{"type":"base64","media_type":{kind},"data":{data}}}"#));
    }
    is_web_address(address).then(|| format!(r#"{{"type":"url","url":{}}}"#, quoted(address)))
}
