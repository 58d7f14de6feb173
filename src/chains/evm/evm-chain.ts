import { getAddress, isAddress, toHex, zeroAddress } from 'viem';
import type { Hex } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { ChainUnavailable, PaymentProblem, type Chain, type ChainSetup } from '../chain.ts';
import { createEvmAsset, transferCall, type AssetDomain, type Authorization } from './asset.ts';
import { checkNode } from './check-node.ts';
import { createFacilitatorClient } from '../facilitator-client.ts';
import { settleElsewhere } from './facilitator.ts';
import { createEvmIncoming } from './incoming.ts';
import { createRangeReader } from './log-search.ts';
import { evmRequirements, readEvmPayment, signedAuthorization } from './payment.ts';
import { readSignedPayout, signerOf, signPayout } from './payout.ts';
import { receiverFault } from './receiver.ts';
import { Reverted, createEvmNode } from './rpc.ts';
import { createEvmSightings } from './sightings.ts';
import { createEvmTransactions } from './transactions.ts';
import { VERIFY_GAS_MAX, checkTime, createEvmVerifier, payerAccount } from './verify.ts';

/**
 * A chain of the EVM family whose asset supports EIP-3009, such as USDC. Sends no request yet. Throws Error for an
 * invalid setup.
 */
export function createEvmChain(setup: ChainSetup): Chain {
  const { network, timeoutMs, finality, now } = setup;
  const { domain, asset: assetAddress } = domainOf(setup);
  const { chainId } = domain;
  if (setup.treasuryKey.length !== 32)
    throw new Error(`The treasury key of ${network} must be 32 bytes, not ${setup.treasuryKey.length}`);
  const account = privateKeyToAccount(toHex(setup.treasuryKey));
  const { name: assetName, version: assetVersion } = domain;
  const terms = { network, asset: assetAddress, treasury: account.address, assetName, assetVersion };

  const node = createEvmNode({ rpcUrl: setup.rpcUrl, timeoutMs });
  const asset = createEvmAsset(node, assetAddress);
  const sighting = {
    node,
    asset,
    treasury: account.address.toLowerCase() as Hex,
    finality,
    reader: createRangeReader(node),
  };
  const sightings = createEvmSightings(sighting);
  const incoming = createEvmIncoming({ ...sighting, network, snapshots: setup.snapshots ?? null });
  const transactions = createEvmTransactions({ node, account, chainId, now });
  const verifier = createEvmVerifier(node, asset);
  const closed = new AbortController();
  const facilitator =
    setup.facilitator === 'in-process'
      ? null
      : createFacilitatorClient({ url: setup.facilitator, timeoutMs, signal: closed.signal });

  /** Broadcasts an authorization unless it is already used. Throws Reverted if it would not succeed. */
  async function carryOut(authorization: Authorization, signature: Hex): Promise<Hex | null> {
    const { from, nonce } = authorization;
    const key = `${from}/${nonce}`;
    const waiting = await transactions.waiting(key);
    if (waiting !== null || (await asset.authorizationState(from, nonce, 'latest'))) return waiting;
    const call = { to: assetAddress, data: transferCall(authorization, signature) };
    await node.call({ ...call, from: account.address, gas: VERIFY_GAS_MAX }, 'latest');
    const gas = ((await node.estimateGas({ ...call, from: account.address })) * 5n) / 4n;
    // The treasury pays the gas, so a contract wallet may not use more than this.
    if (gas > VERIFY_GAS_MAX) throw new Reverted(`it takes ${gas} gas, more than ${VERIFY_GAS_MAX}`);
    return transactions.send(key, { ...call, gas });
  }

  return {
    network,
    asset: assetAddress,
    treasury: account.address,
    paymentsNameAccounts: false,

    open: () => checkNode({ node, asset, network, address: assetAddress, domain, finality }),
    requirements: async (amount) => evmRequirements(terms, amount),
    read: (payment) => readEvmPayment(terms, payment, now()),
    async verify(payment) {
      const { authorization, signature } = signedAuthorization(payment.payload);
      checkTime(authorization, now());
      // The gateway verifies with its own node even if a facilitator settles. The facilitator must not see a payment
      // before a row says who owns it.
      await verifier.verify(payment, authorization, signature);
      return { account: await payerAccount(domain, authorization, signature) };
    },
    async submit(payment) {
      const { authorization, signature } = signedAuthorization(payment.payload);
      if (facilitator) {
        if (await asset.authorizationState(authorization.from, authorization.nonce, 'latest'))
          return { transaction: null };
        return { transaction: await settleElsewhere(facilitator, payment) };
      }
      try {
        return { transaction: await carryOut(authorization, signature) };
      } catch (error) {
        if (!(error instanceof Reverted)) throw error;
        const expired = /expired|InvalidAuthorizationTime/i.test(error.message);
        throw new PaymentProblem(
          expired ? 'payment_expired' : 'payment_verification_failed',
          `The payment would not succeed: ${error.message}`,
          {
            cause: error,
          },
        );
      }
    },
    find: (payment, transaction) =>
      sightings.ofPayment(signedAuthorization(payment.payload).authorization, transaction),
    incoming: incoming.page,
    balanceAt: (cursor) => incoming.balanceAt(cursor),

    addressFault: (address) =>
      receiverFault(address, [
        [account.address, 'the treasury itself'],
        [assetAddress, 'the contract of the asset'],
        [zeroAddress, 'the zero address'],
      ]),
    sign: (payout, previous) => signPayout({ account, domain, network, now }, payout, previous),
    async send(payout, signed) {
      const { authorization, signature } = readSignedPayout(terms, payout, signed);
      try {
        return { transaction: await carryOut(authorization, signature) };
      } catch (error) {
        // Nothing was sent, and the payout may succeed later, for example when the treasury holds enough again.
        if (error instanceof Reverted)
          throw new ChainUnavailable(`The payout ${payout.id} would not succeed now: ${error.message}`, {
            cause: error,
          });
        throw error;
      }
    },
    async findPayout(payout, signed, transaction) {
      const { authorization, signedAt } = readSignedPayout(terms, payout, signed);
      return sightings.ofPayout(authorization, signedAt, transaction);
    },
    payerOf: signerOf,
    close() {
      node.close();
      closed.abort();
    },
  };
}

/** The EIP-712 domain of the asset, checked as far as possible without a node. */
function domainOf({ network, asset, assetName, assetVersion }: ChainSetup): {
  readonly domain: AssetDomain;
  readonly asset: Hex;
} {
  const reference = /^eip155:([1-9]\d{0,14})$/.exec(network)?.[1];
  if (reference === undefined)
    throw new Error(`${JSON.stringify(network)} is not the CAIP-2 name of an EVM chain, such as eip155:8453`);
  if (!isAddress(asset, { strict: false }))
    throw new Error(`The asset of ${network} must be 20 bytes of hex after 0x, not ${JSON.stringify(asset)}`);
  if (!assetName || !assetVersion)
    throw new Error(
      `The asset of ${network} needs the name and the version of its EIP-712 domain: of USDC on Base "USD Coin" and "2"`,
    );
  const address = getAddress(asset);
  return {
    asset: address,
    domain: { name: assetName, version: assetVersion, chainId: Number(reference), verifyingContract: address },
  };
}
