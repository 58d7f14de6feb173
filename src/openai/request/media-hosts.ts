import { GatewayError, isObject, namesPrivateHost } from '#wire';
import type { ChatBody, ContentPart } from './chat-schema.ts';

/** The path to the address of each type of part that may have one. */
const PLACES: Readonly<Record<string, readonly string[]>> = {
  image_url: ['url'],
  video_url: ['url'],
  audio_url: ['url'],
  file: ['file_data', 'file_url'],
};

/**
 * Throws GatewayError `invalid_request` for a part whose address names a host of a private network: the provider
 * would fetch it from within its own network. The addresses that public names resolve to are the provider's to
 * check.
 */
export function refusePrivateMedia({ messages }: ChatBody): void {
  for (const [i, { content }] of messages.entries()) {
    if (!Array.isArray(content)) continue;
    for (const [j, part] of content.entries()) {
      const found = privatePlace(part);
      if (found === null) continue;
      const param = `messages[${i}].content[${j}].${found}`;
      throw new GatewayError('invalid_request', `${param} must name a host of the public internet, or be a data URL`, {
        param,
      });
    }
  }
}

function privatePlace(part: ContentPart): string | null {
  for (const holder in PLACES) {
    const value = part[holder];
    if (typeof value === 'string' && namesPrivateHost(value)) return holder;
    if (typeof value !== 'object' || value === null) continue;
    for (const name of PLACES[holder]!) {
      const address = (value as Readonly<Record<string, unknown>>)[name];
      if (typeof address === 'string' && namesPrivateHost(address)) return `${holder}.${name}`;
    }
  }
  return null;
}

/** Names of members with an address, at wires whose requests pass as they came. */
const ADDRESSES: ReadonlySet<string> = new Set(['url', 'image_url', 'file_url', 'file_data', 'server_url']);

/** The same for a request that a provider gets as it came: wherever an address stands in it. */
export function refusePrivateUrls(value: unknown, path = ''): void {
  if (Array.isArray(value)) (value as unknown[]).forEach((element, i) => refusePrivateUrls(element, `${path}[${i}]`));
  else if (isObject(value))
    for (const [name, member] of Object.entries(value)) {
      const param = path === '' ? name : `${path}.${name}`;
      if (typeof member !== 'string') refusePrivateUrls(member, param);
      else if (ADDRESSES.has(name) && namesPrivateHost(member))
        throw new GatewayError('invalid_request', `${param} must name a host of the public internet`, { param });
    }
}
