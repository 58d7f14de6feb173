export { createMcp, type Mcp, type McpOptions } from './create-mcp.ts';
