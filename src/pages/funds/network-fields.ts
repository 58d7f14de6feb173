import { DOCUMENTED } from '#gateway';

/* Networks and addresses in requests. The code names what is wrong with one; the reference has its form. */

const BASE58 = '[1-9A-HJ-NP-Za-km-z]';

export const networkField = (description?: string) => ({
  type: 'string',
  maxLength: 64,
  ...(description === undefined ? {} : { description }),
  [DOCUMENTED]: { pattern: `^(?:eip155:[0-9]{1,32}|solana:${BASE58}{32})$` },
});

export const addressField = (description?: string) => ({
  type: 'string',
  maxLength: 64,
  ...(description === undefined ? {} : { description }),
  [DOCUMENTED]: { pattern: `^(?:0x[0-9a-fA-F]{40}|${BASE58}{32,44})$` },
});
