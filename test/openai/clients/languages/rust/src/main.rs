//! Chat by async-openai, with the address and the key alone.

use std::env::var;
use std::error::Error;

use async_openai::config::OpenAIConfig;
use async_openai::error::OpenAIError;
use async_openai::types::chat::{
    ChatCompletionRequestUserMessageArgs, ChatCompletionStreamOptions, CreateChatCompletionRequest,
    CreateChatCompletionRequestArgs,
};
use async_openai::Client;
use futures::StreamExt;
use serde_json::json;

fn ask(model: &str, text: &str) -> Result<CreateChatCompletionRequest, OpenAIError> {
    let message = ChatCompletionRequestUserMessageArgs::default().content(text).build()?;
    CreateChatCompletionRequestArgs::default().model(model).messages([message.into()]).build()
}

struct Said {
    text: String,
    finish: String,
    tokens: u32,
}

async fn streamed(
    client: &Client<OpenAIConfig>,
    mut request: CreateChatCompletionRequest,
) -> Result<Said, OpenAIError> {
    let options = ChatCompletionStreamOptions { include_usage: Some(true), include_obfuscation: None };
    request.stream_options = Some(options);
    let mut stream = client.chat().create_stream(request).await?;
    let mut said = Said { text: String::new(), finish: String::new(), tokens: 0 };
    while let Some(chunk) = stream.next().await {
        let chunk = chunk?;
        if let Some(usage) = chunk.usage {
            said.tokens = usage.completion_tokens;
        }
        for choice in chunk.choices {
            said.text += choice.delta.content.as_deref().unwrap_or("");
            if let Some(reason) = choice.finish_reason {
                said.finish = format!("{reason:?}").to_lowercase();
            }
        }
    }
    Ok(said)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let config = OpenAIConfig::new().with_api_base(var("BASE_URL")?).with_api_key(var("KEY")?);
    let client = Client::with_config(config);
    let whole = client.chat().create(ask("test/model", "hello !tokens:4")?).await?;
    let said = streamed(&client, ask("test/model", "hello !tokens:4")?).await?;
    let broken = streamed(&client, ask("test/model", "hello !tokens:40 !cut:2500")?).await.is_err();
    let (code, status) = match client.chat().create(ask("test/none", "hello")?).await {
        Err(OpenAIError::ApiError(response)) => (response.api_error.code, response.status_code.as_u16()),
        Err(other) => (Some(format!("{other:?}")), 0),
        Ok(_) => (None, 200),
    };
    let result = json!({
        "whole": whole.choices[0].message.content,
        "streamed": said.text,
        "finish": said.finish,
        "completionTokens": said.tokens,
        "broken": broken,
        "code": code,
        "status": status,
    });
    println!("{result}");
    Ok(())
}
