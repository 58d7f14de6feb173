import { GatewayError, isObject, namesPrivateHost } from '#wire';
import type { ChatBody, ContentPart } from './chat-schema.ts';

/** The members that may hold an address, by the type of the part. */
const PLACES: Readonly<Record<string, readonly string[]>> = {
  image_url: ['url'],
  video_url: ['url'],
  audio_url: ['url'],
  file: ['file_data', 'file_url'],
};

/**
 * Throws GatewayError `invalid_request` for a part whose address names a host of a private network, because the
 * provider would fetch it from inside its own network. The provider itself has to check the IP addresses that public
 * names resolve to.
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

/** Members that may hold an address, on wires whose requests are forwarded unchanged. */
const ADDRESSES: ReadonlySet<string> = new Set(['url', 'image_url', 'file_url', 'file_data', 'server_url']);

/** The same check for a request that is forwarded unchanged. It searches all levels of the request. */
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
