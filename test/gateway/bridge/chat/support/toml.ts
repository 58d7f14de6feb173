/** Blocks of a gateway's file, with prices that are told apart in sums. */
export const agentToml = (url: string, more = '') => `
[[agents]]
name = "weather"
display_name = "Weather"
provider_name = "Agents"
endpoint = "${url}"
[agents.pricing]
per_call = 0.002
${more}`;

export const toolToml = (url: string, name = 'kit') => `
[[tools]]
name = "${name}"
display_name = "Kit"
provider_name = "Tools"
endpoint = "${url}"
[tools.pricing]
per_call = 0.001
`;

/** 1 USD per 1M prompt tokens, 2 USD per 1M completion tokens. */
export const modelToml = (url: string, name = 'test/model') => `
[[models]]
name = "${name}"
display_name = "Model"
provider_name = "Models"
context_length = 100000
max_output_tokens = 1000
input_modalities = ["text", "image"]
[models.pricing]
prompt = 1
completion = 2
[models.params]
model = "upstream-model"
api_base = "${url}"
api_key = "std::env::TEST_UPSTREAM_KEY"
`;

export const UNHURRIED = `
[limits]
requests_per_minute = 1000000
burst = 1000000
[upstream]
cooldown_ms = 0
[billing]
drain_ms = 500
`;
