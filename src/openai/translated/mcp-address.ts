const PATH = /^(?:\/api\/v1)?\/mcp\/(.+)$/;

/**
 * The service in an MCP address of this gateway; null for another address. `hosts`: the hosts of the gateway; null
 * for an unknown one.
 */
export function serviceAtAddress(url: string, hosts: readonly (string | null)[]): string | null {
  const parsed = URL.parse(url);
  if (parsed === null || !hosts.includes(parsed.host)) return null;
  const service = PATH.exec(parsed.pathname)?.[1];
  if (service === undefined) return null;
  try {
    return decodeURI(service);
  } catch {
    return null;
  }
}

/** The host of the gateway's own address; null without one. */
export const hostOfUrl = (url: string | null | undefined): string | null =>
  url ? (URL.parse(url)?.host ?? null) : null;
