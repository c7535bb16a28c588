//! Serves the tools, resources and prompts that the protocol's conformance suite expects, with the
//! server of `forge mcp`: same runtime, same HTTP, same checks. There is no store, so no token is
//! needed.
//!
//! Prints its address and serves until its input ends.

use forge_cli::mcp::http::{AccessToken, HttpLimits, PATH, listen, router, serve};
use forge_cli::mcp::runtime;
use forge_cli::mcp::server::VERSIONS;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, JsonObject, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    Prompt, PromptArgument, PromptMessage, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, Resource, ResourceContents, ResourceTemplate, Role,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::io::Write;
use std::net::Ipv4Addr;

/// An image of one red pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// A sound without samples.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (runtime, limits) = (runtime()?, HttpLimits::default());
    let (listener, address) = runtime.block_on(listen((Ipv4Addr::LOCALHOST, 0).into()))?;
    let mut stdout = std::io::stdout();
    writeln!(stdout, "http://{address}{PATH}")?;
    stdout.flush()?;
    let stop = async {
        let _ = tokio::task::spawn_blocking(|| {
            std::io::copy(&mut std::io::stdin(), &mut std::io::sink())
        })
        .await;
    };
    let router = router(Fixture, address, AccessToken::None, limits);
    runtime.block_on(serve(listener, router, limits, stop));
    Ok(())
}

/// The handler with the suite's tools, resources and prompts.
#[derive(Clone, Copy, Debug)]
struct Fixture;

fn tool(name: &'static str, schema: Value) -> Tool {
    let Value::Object(schema) = schema else { unreachable!("schemas here are objects") };
    Tool::new(name, "A tool of the conformance suite", schema)
}

fn no_arguments() -> Value {
    json!({ "type": "object", "properties": {}, "additionalProperties": false })
}

fn embedded(uri: &str, mime_type: &str, text: &str) -> ContentBlock {
    ContentBlock::resource(ResourceContents::text(text, uri).with_mime_type(mime_type))
}

fn text_of<'a>(arguments: &'a JsonObject, name: &str) -> &'a str {
    arguments.get(name).and_then(Value::as_str).unwrap_or_default()
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder();
        let capabilities = capabilities.enable_tools().enable_resources().enable_prompts().build();
        ServerConfig::new(capabilities).with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(VERSIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut tools: Vec<Tool> = [
            "test_simple_text", "test_image_content", "test_audio_content",
            "test_embedded_resource", "test_multiple_content_types", "test_error_handling",
        ]
        .into_iter()
        .map(|name| tool(name, no_arguments()))
        .collect();
        tools.push(tool(
            "json_schema_2020_12_tool",
            json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "type": "object",
                "$defs": {
                    "address": {
                        "type": "object",
                        "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
                    },
                },
                "properties": {
                    "name": { "type": "string" },
                    "address": { "$ref": "#/$defs/address" },
                },
                "additionalProperties": false,
            }),
        ));
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let content = match request.name.as_ref() {
            "test_simple_text" => {
                vec![ContentBlock::text("This is a simple text response for testing.")]
            }
            "test_image_content" => vec![ContentBlock::image(PNG, "image/png")],
            "test_audio_content" => vec![ContentBlock::audio(WAV, "audio/wav")],
            "test_embedded_resource" => vec![embedded(
                "test://embedded-resource",
                "text/plain",
                "This is an embedded resource content.",
            )],
            "test_multiple_content_types" => vec![
                ContentBlock::text("Multiple content types test:"),
                ContentBlock::image(PNG, "image/png"),
                embedded(
                    "test://mixed-content-resource",
                    "application/json",
                    r#"{"test":"data","value":123}"#,
                ),
            ],
            "test_error_handling" => {
                let text = "This tool intentionally returns an error for testing";
                return Ok(CallToolResult::error(vec![ContentBlock::text(text)]).into());
            }
            "json_schema_2020_12_tool" => vec![ContentBlock::text("taken")],
            other => return Err(ErrorData::invalid_params(format!("no tool '{other}'"), None)),
        };
        Ok(CallToolResult::success(content).into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resources =
            [("test://static-text", "text/plain"), ("test://static-binary", "image/png")];
        let resources = resources.map(|(uri, mime_type)| {
            let resource = Resource::new(uri, uri).with_description("A resource of the suite");
            resource.with_mime_type(mime_type)
        });
        Ok(ListResourcesResult::with_all_items(resources.into()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = ResourceTemplate::new("test://template/{id}/data", "template");
        Ok(ListResourceTemplatesResult::with_all_items(vec![template]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri.as_str();
        let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
        let contents = match (uri, id) {
            ("test://static-text", _) => {
                ResourceContents::text("This is the content of the static text resource.", uri)
                    .with_mime_type("text/plain")
            }
            ("test://static-binary", _) => {
                ResourceContents::blob(PNG, uri).with_mime_type("image/png")
            }
            (_, Some(id)) => {
                let data = format!("Data for ID: {id}");
                let text = json!({ "id": id, "templateTest": true, "data": data });
                ResourceContents::text(text.to_string(), uri).with_mime_type("application/json")
            }
            _ => return Err(ErrorData::resource_not_found(format!("no resource '{uri}'"), None)),
        };
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let prompt = |name: &str, arguments: &[&str]| {
            let arguments = arguments.iter().map(|name| {
                let argument = PromptArgument::new(*name).with_description("An argument");
                argument.with_required(true)
            });
            Prompt::new(name, Some("A prompt of the suite"), Some(arguments.collect()))
        };
        Ok(ListPromptsResult::with_all_items(vec![
            prompt("test_simple_prompt", &[]),
            prompt("test_prompt_with_arguments", &["arg1", "arg2"]),
            prompt("test_prompt_with_embedded_resource", &["resourceUri"]),
            prompt("test_prompt_with_image", &[]),
        ]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let given = |name: &str| text_of(&arguments, name).to_owned();
        let messages = match request.name.as_str() {
            "test_simple_prompt" => {
                vec![ContentBlock::text("This is a simple prompt for testing.")]
            }
            "test_prompt_with_arguments" => vec![ContentBlock::text(format!(
                "Prompt with arguments: arg1='{}', arg2='{}'",
                given("arg1"),
                given("arg2"),
            ))],
            "test_prompt_with_embedded_resource" => vec![
                embedded(
                    &given("resourceUri"),
                    "text/plain",
                    "Embedded resource content for testing.",
                ),
                ContentBlock::text("Please process the embedded resource above."),
            ],
            "test_prompt_with_image" => vec![
                ContentBlock::image(PNG, "image/png"),
                ContentBlock::text("Please analyze the image above."),
            ],
            other => return Err(ErrorData::invalid_params(format!("no prompt '{other}'"), None)),
        };
        let messages = messages.into_iter().map(|content| PromptMessage::new(Role::User, content));
        Ok(GetPromptResult::new(messages.collect()).into())
    }
}
