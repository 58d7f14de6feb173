export { type Mcp, createMcp } from './create-mcp.ts';
export { oldTransport } from './http/routes.ts';
export { createSessionStore } from './request/session-store.ts';
