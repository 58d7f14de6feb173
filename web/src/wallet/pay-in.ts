import { actsFor } from '../api/acting.ts';
import { ApiError } from '../api/api-error.ts';
import { api, call, data } from '../api/client.ts';
import { type ConnectedWallet, WalletError } from './wallet.ts';

/** One way to pay that a 402 answer offers, in version 2 of x402. */
interface Requirements {
  readonly scheme: string;
  readonly network: string;
  readonly amount: string;
  readonly asset: string;
  readonly payTo: string;
  readonly maxTimeoutSeconds: number;
  readonly extra?: Readonly<Record<string, unknown>>;
}

export interface Paid {
  readonly account: string;
  readonly credited_micro_usdc: number;
  readonly transaction: string;
}

const TYPES = {
  EIP712Domain: [
    { name: 'name', type: 'string' },
    { name: 'version', type: 'string' },
    { name: 'chainId', type: 'uint256' },
    { name: 'verifyingContract', type: 'address' },
  ],
  TransferWithAuthorization: [
    { name: 'from', type: 'address' },
    { name: 'to', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'validAfter', type: 'uint256' },
    { name: 'validBefore', type: 'uint256' },
    { name: 'nonce', type: 'bytes32' },
  ],
};

/** The payment is valid from this many seconds ago, because the clocks of wallets and chains differ. */
const EARLY_S = 600;

/** Pays in an amount with a wallet of the network's family. Rejects with ApiError and WalletError. */
export const topUp = (wallet: ConnectedWallet, network: string, usd: string): Promise<Paid> =>
  network.startsWith('solana:') ? payOnSolana(wallet, network, usd) : payOnEvm(wallet, network, usd);

/** The gateway builds the transaction and the wallet signs it. Then the gateway pays its fee and sends it. */
async function payOnSolana(wallet: ConnectedWallet, network: string, usd: string): Promise<Paid> {
  if (wallet.signTransaction === null) throw new WalletError('This wallet cannot sign payments of this network.');
  const { accepted, transaction } = await data(
    api.POST('/api/v1/topup/transaction', { body: { amount_usd: usd, network, payer: wallet.address } }),
  );
  const signed = await wallet.signTransaction(transaction, network);
  return pay({ x402Version: 2, accepted, payload: { transaction: signed } }, usd);
}

/**
 * An EVM wallet signs a USDC authorization (EIP-3009), and the gateway executes it. The wallet needs no gas. Rejects
 * with ApiError and WalletError.
 */
async function payOnEvm(wallet: ConnectedWallet, network: string, usd: string): Promise<Paid> {
  const terms = await termsOf(usd);
  const accepted = terms.find((one) => one.scheme === 'exact' && one.network === network);
  if (accepted === undefined) throw new WalletError('This gateway does not take payments on that network.');
  if (wallet.signTypedData === null) throw new WalletError('This wallet cannot sign payments of this network.');
  const now = Math.floor(Date.now() / 1_000);
  const authorization = {
    from: wallet.address,
    to: accepted.payTo,
    value: accepted.amount,
    validAfter: String(now - EARLY_S),
    validBefore: String(now + accepted.maxTimeoutSeconds),
    nonce: `0x${crypto.getRandomValues(new Uint8Array(32)).toHex()}`,
  };
  const domain = {
    name: accepted.extra?.['name'],
    version: accepted.extra?.['version'],
    chainId: Number(network.split(':')[1]),
    verifyingContract: accepted.asset,
  };
  const data = { types: TYPES, domain, primaryType: 'TransferWithAuthorization', message: authorization };
  const signature = await wallet.signTypedData(data, network);
  return pay({ x402Version: 2, accepted, payload: { signature, authorization } }, usd);
}

/** Asks the gateway for the ways to pay in an amount. */
async function termsOf(usd: string): Promise<readonly Requirements[]> {
  const acting = actsFor('/api/v1/topup');
  const answer = await fetch('/api/v1/topup', {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-tollgate-web': '1',
      ...(acting === null ? {} : { 'x-tollgate-account': acting }),
    },
    body: JSON.stringify({ amount_usd: usd }),
  });
  const body = (await answer.json()) as {
    readonly accepts?: readonly Requirements[];
    readonly error?: { readonly message: string; readonly type: string; readonly param?: string | null };
  };
  if (answer.status === 402 && body.accepts !== undefined) return body.accepts;
  throw new ApiError(body.error?.message ?? 'The gateway named no way to pay', {
    status: answer.status,
    type: body.error?.type ?? 'unknown',
    param: body.error?.param ?? null,
  });
}

const AGAIN_MS = 2_000;
const TRIES = 15;

/** Sends a signed payment again until the gateway says whether it was settled. It is credited only once. */
async function pay(payment: object, usd: string): Promise<Paid> {
  const headers = { 'payment-signature': new TextEncoder().encode(JSON.stringify(payment)).toBase64() };
  for (let tries = 1; ; tries += 1) {
    const answer = await call(api.POST('/api/v1/topup', { body: { amount_usd: usd }, headers }));
    if (answer.data !== undefined) return answer.data;
    if (tries === TRIES)
      throw new WalletError('The payment is on its way. It appears below as soon as its chain has it.');
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}
