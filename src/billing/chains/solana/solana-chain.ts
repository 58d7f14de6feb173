import type { Address } from '@solana/kit';
import type { Chain, ChainSetup } from '../chain.ts';
import { createFacilitatorClient } from '../ask-json.ts';
import { addressOf, tokenAccountAddress, treasuryKeyOf } from './address.ts';
import { draftPayment } from './build-transaction.ts';
import { readExact } from './exact.ts';
import { createExpiry } from './expiry.ts';
import { createOwnFacilitator, createRemoteFacilitator } from './facilitator.ts';
import { createIncoming } from './incoming.ts';
import { createSolanaNode } from './node.ts';
import { openTreasury } from './open.ts';
import { createPaymentReader } from './payment-reader.ts';
import { createPayouts } from './payout.ts';
import { createPaymentObservation } from './payment-observation.ts';

/** A blockhash is valid for 150 blocks, about a minute. */
const TIMEOUT_SECONDS = 60;

/** The token account of the treasury that hands over. */
const beforeOf = (key: Uint8Array | null | undefined, asset: Address): Address | null =>
  key == null ? null : tokenAccountAddress(treasuryKeyOf(key).address, asset);

/**
 * The Solana chain: x402 `exact` payments in an SPL token with 6 decimals, and payouts from the same treasury. A
 * payment's transaction is signed by its payer and co-signed by the fee payer. Final means the node's level
 * `finalized`. Throws Error for an invalid key, address or setting.
 */
export function createSolanaChain(setup: ChainSetup): Chain {
  const { network, timeoutMs, facilitator: where } = setup;
  const key = treasuryKeyOf(setup.treasuryKey);
  const treasury = key.address;
  const asset = addressOf(setup.asset);
  if (asset === null)
    throw new Error(
      `the asset on ${network} must be the address of a token's mint in base58, not ${JSON.stringify(setup.asset.slice(0, 80))}`,
    );
  if (!/^solana:[1-9A-HJ-NP-Za-km-z]{32}$/.test(network))
    throw new Error(`a network of Solana is solana:<first 32 characters of its genesis hash>, not ${network}`);
  if (setup.finality !== null)
    throw new Error(`finality in blocks is for EVM networks: on ${network} final is what the node calls finalized`);

  const closed = new AbortController();
  const node = createSolanaNode(setup.rpcUrl, timeoutMs, closed.signal);
  const treasuryAccount = tokenAccountAddress(treasury, asset);
  const expiry = createExpiry(node, network);
  const facilitator =
    where === 'in-process'
      ? createOwnFacilitator(key, node, setup.now)
      : createRemoteFacilitator({
          client: createFacilitatorClient({ url: where, timeoutMs, signal: closed.signal }),
          network,
          treasury,
          node,
          now: setup.now,
        });
  const { read, termsNow, soughtOf } = createPaymentReader({
    network,
    asset,
    treasuryAccount,
    key,
    paysFees: where === 'in-process',
    now: setup.now,
  });
  const observation = createPaymentObservation(node, expiry, treasuryAccount, asset);
  const incoming = createIncoming(node, network, treasuryAccount, asset, beforeOf(setup.previousKey, asset));
  const payouts = createPayouts(node, key, asset, expiry, setup.opensAccounts ?? false);

  return {
    network,
    asset,
    treasury,
    paymentsNameAccounts: true,

    async open() {
      await openTreasury({ node, network, asset, key, treasuryAccount, timeoutMs });
      await facilitator.feePayer();
    },

    async requirements(amount, account) {
      const feePayer = await facilitator.feePayer();
      return {
        scheme: 'exact',
        network,
        asset,
        amount: String(amount),
        payTo: treasury,
        maxTimeoutSeconds: TIMEOUT_SECONDS,
        extra: { feePayer, paymentFlow: 'upfront', ...(account === null ? {} : { memo: account }) },
      };
    },

    async draft(requirements, payer) {
      const address = addressOf(payer);
      return address === null ? null : draftPayment(requirements, address, node);
    },

    read,

    async verify(payment) {
      readExact(payment.payload['transaction'], termsNow(payment.requirements));
      await facilitator.verify(payment);
      return { account: payment.payerAccount };
    },

    submit: async (payment) => ({ transaction: await facilitator.submit(payment, termsNow(payment.requirements)) }),
    find: async (payment, transaction) => observation.find(soughtOf(payment), transaction),

    incoming: incoming.page,
    balanceAt: incoming.balanceAt,

    addressFault: payouts.addressFault,
    sign: payouts.sign,
    send: payouts.send,
    findPayout: (payout, signed) => payouts.find(payout, signed),
    payerOf: payouts.payerOf,

    close: () => closed.abort(),
  };
}
