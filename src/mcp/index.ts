export { createMcp, type Mcp } from './create-mcp.ts';
export { oldTransport } from './door/old-transport.ts';
