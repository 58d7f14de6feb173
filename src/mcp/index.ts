export { createMcp, type Mcp } from './create-mcp.ts';
export { oldTransport } from './http/old-transport.ts';
