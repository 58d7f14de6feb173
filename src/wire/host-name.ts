import { isIP } from 'node:net';

/** A host and its port as a header or a URL has them. */
export interface HostName {
  /** Lower case, without a trailing dot; addresses in their shortest form, IPv6 in brackets. */
  readonly name: string;
  /** The port's digits; empty without a port. */
  readonly port: string;
}

/**
 * Letters, digits, hyphens and dots, or an IPv6 address in brackets; no user, no percent-encoding, no other alphabet.
 */
const HOST = /^(\[[0-9a-f:.]{2,45}\]|[a-z0-9_](?:[a-z0-9_.-]{0,253}))(?::(\d{1,5}))?$/i;

/** The parts of `host` or `host:port`; null for anything else. */
export function parseHost(text: string): HostName | null {
  const [, host, port = ''] = HOST.exec(text) ?? [];
  if (host === undefined) return null;
  const name = URL.parse(`http://${host}/`)?.hostname.replace(/\.$/, '');
  if (name === undefined || name === '') return null;
  return { name, port };
}

/** Whether a host name, as parseHost or URL write it, is this machine's own. */
export function isLoopback(name: string): boolean {
  return name === 'localhost' || name === '[::1]' || name === '::1' || (isIP(name) === 4 && name.startsWith('127.'));
}
