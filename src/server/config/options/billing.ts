import { callCost } from '../blocks/price.ts';
import { choice, option, whole, HOUR_MS, MIB, optionalText, usd, MINUTE_MS, openToStrangers } from '../option.ts';
import { show, WrongValue } from '../problem.ts';

/* Money: of calls, of quotes, and over chains. */

export const BILLING = {
  fee_bps: whole({
    min: 0,
    max: 10_000,
    default: 0,
    meaning:
      "Operator's fee in basis points of the cost of a call: 100 is one percent. Parts of a micro-USD are rounded so that the sum over many calls is right.",
  }),
  own_key_bps: whole({
    min: 0,
    max: 10_000,
    default: 500,
    meaning:
      "Price of a call with a consumer's own key at the provider (`params.own_keys` of a model), in basis points of the usual price: 500 is 5 %. All of it is the operator's.",
  }),
  drain_ms: whole({
    min: 0,
    max: HOUR_MS,
    default: 30_000,
    meaning:
      'How long the gateway goes on reading a reply after the client has left, where its provider [goes on and bills](reference/endings.md#when-a-client-leaves). Tools have the same time to answer, and realtime sessions to report their usage.',
  }),
  drain_bytes: whole({
    min: 0,
    max: 1024 * MIB,
    default: 16 * MIB,
    meaning: 'How many bytes of a reply the gateway goes on reading in this time.',
  }),
  sweep_ms: whole({
    min: 50,
    max: HOUR_MS,
    default: 10_000,
    meaning: 'Time between two searches for expired locks.',
  }),
  receipts: choice({
    values: ['always', 'on-request'],
    default: 'on-request',
    meaning:
      'Whether every answer that is not streamed has a signed receipt, or only those to requests with `x-receipt: 1`.',
  }),
  end_users: choice({
    values: ['digest', 'plain', 'off'],
    default: 'digest',
    meaning:
      'How the records of calls name the end users that requests name (`user`, `metadata.user_id`): by a digest, as the client wrote them, or not at all ([end users](use/tags.md#end-users)).',
  }),
  run_cost_max: callCost(
    'Largest cost of a chat request whose model calls tools through the gateway, if the request has no `max_cost`. This amount is locked for all of its calls.',
    { text: '1', fallback: 1_000_000n },
  ),
};

const FLUSH_TAKES = '`each`, or 5 to 1000 milliseconds, such as `50ms`';

export const LEDGER = {
  flush: option<number | null>({
    takes: FLUSH_TAKES,
    optional: { text: 'each', fallback: null },
    meaning:
      'When the charge of a call is on the disk. `each`: before the caller gets the end of the reply. A time: at most so much later, and a crash undoes the charges of at most this time, as if the calls had been released ([late charges](run/late-charges.md)). Set it only where the money is internal. Gateways that share a database must have the same value.',
    read: (value) => {
      if (value === 'each') return null;
      const ms = typeof value === 'string' && /^\d{1,4}ms$/.test(value) ? Number.parseInt(value, 10) : 0;
      if (ms < 5 || ms > 1_000)
        throw new WrongValue(`is ${show(value)}`, '"each", or 5 to 1000 milliseconds, such as "50ms"');
      return ms;
    },
  }),
};

const DAY_S = 86_400;

export const PAYMENTS = {
  payouts: optionalText({
    takes: 'text of up to 300 characters on one line',
    absent: 'none',
    meaning:
      'How you pay providers outside of the gateway, for example `by bank transfer on the first of each month, ask billing@gateway.example`. Providers see it when their proxy connects, with `--validate`, and on their pages.',
    fault: (value) => (/^[^\p{C}\p{Zl}\p{Zp}]{1,300}$/u.test(value) ? null : 'is empty, too long or has a line break'),
  }),
  wait_ms: whole({
    min: 0,
    max: MINUTE_MS,
    default: 8_000,
    meaning:
      'How long a request waits for the payment that came with it. If the payment takes longer, the answer is 202, and the payment is credited when it arrives.',
  }),
  address_cooldown_s: whole({
    min: 0,
    max: 30 * DAY_S,
    default: DAY_S,
    meaning: 'How long a wallet must be linked to an account before withdrawals of the account can go to it.',
  }),
  watch_ms: whole({
    min: 100,
    max: HOUR_MS,
    default: 5_000,
    meaning: 'Time between two checks for money that came into the treasuries.',
  }),
  compare_late_ms: whole({
    min: 10_000,
    max: 7 * 24 * HOUR_MS,
    default: HOUR_MS / 2,
    meaning:
      'If the books were not compared with a treasury for this time, the gateway logs an error and `/health/ready` names the chain.',
  }),
  strangers_max: openToStrangers(
    usd({
      min: 0n,
      max: 1_000_000_000_000n,
      default: 1_000_000_000n,
      meaning:
        'Limit on the sum of credited payments from wallets without their own account that are not final yet, over all chains. Payments above it are credited when they are final.',
    }),
  ),
  compare_ms: whole({
    min: 1_000,
    max: 24 * HOUR_MS,
    default: 5 * MINUTE_MS,
    meaning: 'Time between two comparisons of the books with the balances of the treasuries.',
  }),
};

export const QUOTES = {
  valid_ms: whole({
    min: MINUTE_MS,
    max: HOUR_MS,
    default: 5 * MINUTE_MS,
    meaning:
      'How long a quote is valid. A call that names a valid quote costs what the quote says, even if the price has changed.',
  }),
};
