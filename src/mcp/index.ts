export { createMcp, type Mcp } from './create-mcp.ts';
export { oldTransport } from './http/routes.ts';
