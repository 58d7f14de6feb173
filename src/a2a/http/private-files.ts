import { isObject, type JsonObject, namesPrivateHost } from '#wire';
import { A2aError } from '../wire/errors.ts';

/**
 * Refuses a message with a file URL on a host of a private network, because the agent would fetch it from within its
 * own network. The agent must check the IP addresses that public names resolve to. Throws A2aError `InvalidParams`.
 */
export function refusePrivateFiles({ message }: JsonObject): void {
  const parts: unknown = isObject(message) ? message['parts'] : undefined;
  if (!Array.isArray(parts)) return;
  for (const [index, part] of parts.entries()) {
    if (!isObject(part)) continue;
    const { url, file } = part;
    const { uri, fileWithUri } = isObject(file) ? file : NO_FILE;
    const addresses = { url, 'file.uri': uri, 'file.fileWithUri': fileWithUri };
    const found = Object.entries(addresses).find(([, address]) => isPrivate(address));
    if (found === undefined) continue;
    const param = `message.parts[${index}].${found[0]}`;
    throw new A2aError('InvalidParams', `${param} must name a host of the public internet`, { param });
  }
}

const NO_FILE: JsonObject = {};
const isPrivate = (address: unknown): boolean => typeof address === 'string' && namesPrivateHost(address);
