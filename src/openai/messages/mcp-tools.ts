import { GatewayError } from '#wire';
import type { ChatTool } from '../chat/chat-schema.ts';
import type { Json, MessagesBody } from './messages-schema.ts';
import { invalid } from './text-of-block.ts';

/** Returns the service in an MCP address of this gateway; null for another address. */
export type ServiceAt = (url: string) => string | null;

/** A tool of type `mcp`, which names a service of this gateway. */
export function ownService({ service, allowed_tools: allowed }: Json, at: string): ChatTool {
  if (typeof service !== 'string' || service === '') throw invalid(`${at}.service`, 'the name of a tool service');
  return { type: 'mcp', service, ...allowedTools(allowed, `${at}.allowed_tools`) };
}

/**
 * The tools of an MCP server that the request lists, by an `mcp_toolset`. Throws GatewayError unless the server is a
 * service of this gateway.
 */
export function ofToolset(
  { mcp_server_name: name, configs, default_config: base }: Json,
  at: string,
  { mcp_servers: servers }: MessagesBody,
  serviceAt: ServiceAt,
): ChatTool {
  const server = servers?.find((one) => one['name'] === name);
  if (server === undefined) throw invalid(`${at}.mcp_server_name`, 'the name of one of mcp_servers');
  const service = serviceOf(server, serviceAt);
  const switched = Object.entries((configs ?? {}) as Record<string, Json | null>);
  const named = (enabled: boolean) =>
    switched.filter(([, config]) => config?.['enabled'] === enabled).map(([tool]) => tool);
  if ((base as Json | null | undefined)?.['enabled'] === false)
    return { type: 'mcp', service, allowed_tools: named(true) };
  const disallowed = named(false);
  return { type: 'mcp', service, ...(disallowed.length === 0 ? {} : { disallowed_tools: disallowed }) };
}

/**
 * The tools of the MCP servers that no `mcp_toolset` names. The first beta of the API had no toolsets, and the server
 * itself had a `tool_configuration`. Throws GatewayError for a server that is no service of this gateway.
 */
export function withoutToolset({ tools, mcp_servers: servers }: MessagesBody, serviceAt: ServiceAt): ChatTool[] {
  const named = new Set((tools ?? []).map(({ type, mcp_server_name: name }) => type === 'mcp_toolset' && name));
  return (servers ?? []).flatMap((server, index) => {
    if (named.has(server['name'])) return [];
    const service = serviceOf(server, serviceAt);
    const configuration = server['tool_configuration'] as Json | null | undefined;
    if (configuration?.['enabled'] === false) return [];
    const at = `mcp_servers[${index}].tool_configuration.allowed_tools`;
    return [{ type: 'mcp', service, ...allowedTools(configuration?.['allowed_tools'], at) }];
  });
}

function serviceOf({ name, url }: Json, serviceAt: ServiceAt): string {
  const service = typeof url === 'string' ? serviceAt(url) : null;
  if (service !== null) return service;
  throw new GatewayError(
    'unprocessable',
    `The gateway calls only tools of its own services: the url of the MCP server ${String(name).slice(0, 64)} must be <this gateway>/mcp/<service>`,
    { param: 'mcp_servers' },
  );
}

function allowedTools(allowed: unknown, at: string): { allowed_tools?: string[] } {
  if (allowed === undefined || allowed === null) return {};
  if (!Array.isArray(allowed) || allowed.length > 256 || allowed.some((one) => typeof one !== 'string' || one === ''))
    throw invalid(at, 'an array of at most 256 names of tools');
  return { allowed_tools: allowed as string[] };
}
