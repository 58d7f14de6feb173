import { createHmac } from 'node:crypto';

const TAG_CHARS = 22;

/**
 * What a provider's proxy tells consumers apart by, see CONSUMER_HEADER. The same at every gateway that has the
 * secret; who it is cannot be found out from it.
 */
export const createConsumerTag =
  (secret: Buffer) =>
  (provider: string, account: string): string =>
    createHmac('sha256', secret).update(`${provider} ${account}`).digest('base64url').slice(0, TAG_CHARS);
