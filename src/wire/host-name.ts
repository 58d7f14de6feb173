import { isIP } from 'node:net';

/** A host and its port, from a header or a URL. */
export interface HostName {
  /** Lower case, without a trailing dot. Addresses are in their shortest form, IPv6 in brackets. */
  readonly name: string;
  /** The port's digits; empty without a port. */
  readonly port: string;
}

/**
 * Letters, digits, hyphens, underscores and dots, or an IPv6 address in brackets. No user, no percent-encoding, no
 * other alphabet.
 */
const HOST = /^(\[[0-9a-f:.]{2,45}\]|[a-z0-9_](?:[a-z0-9_.-]{0,253}))(?::(\d{1,5}))?$/i;

/** Parses `host` or `host:port`; null for anything else. */
export function parseHost(text: string): HostName | null {
  const [, host, port = ''] = HOST.exec(text) ?? [];
  if (host === undefined) return null;
  const name = URL.parse(`http://${host}/`)?.hostname.replace(/\.$/, '');
  if (name === undefined || name === '') return null;
  return { name, port };
}

/** True if a host name, in the form of parseHost or URL, is a loopback name or address. */
export function isLoopback(name: string): boolean {
  return name === 'localhost' || name === '[::1]' || name === '::1' || (isIP(name) === 4 && name.startsWith('127.'));
}
