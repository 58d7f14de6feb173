export { createMcp, type Mcp, type McpOptions } from './create-mcp.ts';
export type { SpokenTool, ToolSpeaker } from './tool-speaker.ts';
export { oldTransport } from './old-transport.ts';
