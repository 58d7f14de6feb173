/** A `[[tools]]` block: an MCP server by its URL, 0.001 USD per call. */
export function toolBlock(name: string, endpoint: string): string {
  return `
[[tools]]
name = "${name}"
display_name = "${name}"
provider_name = "Fixture"
endpoint = "${endpoint}"
[tools.pricing]
per_call = 0.001
`;
}
