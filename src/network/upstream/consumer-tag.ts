import { createHmac } from 'node:crypto';

const TAG_CHARS = 22;

/**
 * A tag by which a provider's proxy can tell consumers apart, see CONSUMER_HEADER. Every gateway that has the secret
 * gives the same one. It does not reveal the account.
 */
export const createConsumerTag =
  (secret: Buffer) =>
  (provider: string, account: string): string =>
    createHmac('sha256', secret).update(`${provider} ${account}`).digest('base64url').slice(0, TAG_CHARS);
