import { createHmac } from 'node:crypto';

const TAG_CHARS = 22;

/**
 * A tag with which a provider's proxy, or the process of a package, can tell consumers apart. See CONSUMER_HEADER. All
 * gateways with the same secret give the same tag. It does not reveal the account.
 */
export const createConsumerTag =
  (secret: Buffer) =>
  (provider: string, account: string): string =>
    createHmac('sha256', secret).update(`${provider} ${account}`).digest('base64url').slice(0, TAG_CHARS);
