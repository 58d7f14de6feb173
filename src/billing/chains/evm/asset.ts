import {
  decodeAbiParameters,
  decodeFunctionResult,
  encodeFunctionData,
  pad,
  parseAbi,
  parseSignature,
  toEventSelector,
} from 'viem';
import type { Hex } from 'viem';
import type { MicroUsd } from '#billing';
import { ChainUnavailable } from '../chain.ts';
import { Reverted, type EvmLog, type EvmNode } from './rpc.ts';

/** EIP-3009 and the other functions of USDC's FiatToken v2 that are used here. */
const ASSET_ABI = parseAbi([
  'function decimals() view returns (uint8)',
  'function DOMAIN_SEPARATOR() view returns (bytes32)',
  'function balanceOf(address account) view returns (uint256)',
  'function authorizationState(address authorizer, bytes32 nonce) view returns (bool)',
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)',
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
]);

export const TRANSFER = toEventSelector('Transfer(address,address,uint256)');
export const AUTHORIZATION_USED = toEventSelector('AuthorizationUsed(address,bytes32)');
export const AUTHORIZATION_CANCELED = toEventSelector('AuthorizationCanceled(address,bytes32)');

/** EIP-712 types of the message that a payer signs (EIP-3009). */
export const AUTHORIZATION_TYPES = {
  TransferWithAuthorization: [
    { name: 'from', type: 'address' },
    { name: 'to', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'validAfter', type: 'uint256' },
    { name: 'validBefore', type: 'uint256' },
    { name: 'nonce', type: 'bytes32' },
  ],
} as const;

export interface AssetDomain {
  readonly name: string;
  readonly version: string;
  readonly chainId: number;
  readonly verifyingContract: Hex;
}

/**
 * An EIP-3009 authorization. Addresses and nonce are in lower case, times in epoch seconds. It can be executed after
 * `validAfter` and before `validBefore`.
 */
export interface Authorization {
  readonly from: Hex;
  readonly to: Hex;
  readonly value: bigint;
  readonly validAfter: bigint;
  readonly validBefore: bigint;
  readonly nonce: Hex;
}

/** The contract at the asset's address lacks a function: the address is wrong, or the node has lost the state. */
export class NoSuchAsset extends ChainUnavailable {}

export interface EvmAsset {
  readonly address: Hex;
  decimals(): Promise<number>;
  domainSeparator(): Promise<Hex>;
  balanceOf(account: Hex, at: 'latest' | bigint): Promise<MicroUsd>;
  /** Whether an authorization was used: executed or cancelled. Once true, it stays true on that chain of blocks. */
  authorizationState(authorizer: Hex, nonce: Hex, at: 'latest' | bigint): Promise<boolean>;
}

export function createEvmAsset(node: EvmNode, address: Hex): EvmAsset {
  type View = 'decimals' | 'DOMAIN_SEPARATOR' | 'balanceOf' | 'authorizationState';
  async function view(functionName: View, args: readonly unknown[], at: 'latest' | bigint): Promise<unknown> {
    const call = { abi: ASSET_ABI, functionName, args } as Parameters<typeof encodeFunctionData>[0];
    let data: Hex;
    try {
      data = await node.call({ to: address, data: encodeFunctionData(call) }, at);
    } catch (error) {
      if (error instanceof Reverted)
        throw new NoSuchAsset(`${address} does not answer ${functionName}: ${error.message}`, { cause: error });
      throw error;
    }
    if (data === '0x') throw new NoSuchAsset(`${address} does not answer ${functionName}`);
    try {
      return decodeFunctionResult({ abi: ASSET_ABI, functionName, data });
    } catch (error) {
      throw new ChainUnavailable(`The node gave an invalid answer (${functionName} of ${address})`, { cause: error });
    }
  }
  return {
    address,
    decimals: async () => (await view('decimals', [], 'latest')) as number,
    domainSeparator: async () => (await view('DOMAIN_SEPARATOR', [], 'latest')) as Hex,
    async balanceOf(account, at) {
      try {
        return (await view('balanceOf', [account], at)) as bigint;
      } catch (error) {
        // Before the token was deployed every balance was 0. A private test chain starts in this state.
        if (error instanceof NoSuchAsset && (await node.code(address, at)) === '0x') return 0n;
        throw error;
      }
    },
    authorizationState: async (authorizer, nonce, at) =>
      (await view('authorizationState', [authorizer, nonce], at)) as boolean,
  };
}

/**
 * Call data that executes an authorization. Signatures of 65 bytes use the function that every EIP-3009 token has.
 * Longer signatures (of contract wallets) use the function of FiatToken v2.2.
 */
export function transferCall(authorization: Authorization, signature: Hex): Hex {
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  const args = [from, to, value, validAfter, validBefore, nonce] as const;
  const functionName = 'transferWithAuthorization';
  if (!isPlainSignature(signature))
    return encodeFunctionData({ abi: ASSET_ABI, functionName, args: [...args, signature] });
  const { r, s, yParity } = parseSignature(withRecoveryByte(signature));
  return encodeFunctionData({ abi: ASSET_ABI, functionName, args: [...args, 27 + yParity, r, s] });
}

/** Whether a signature has 65 bytes. */
export const isPlainSignature = (signature: Hex): boolean => signature.length === 132;

/**
 * Normalises the last byte of a signature: tokens accept only 27 and 28, but some wallets write 0 or 1. Any other last
 * byte belongs to a contract wallet and is left unchanged.
 */
export function withRecoveryByte(signature: Hex): Hex {
  if (!isPlainSignature(signature)) return signature;
  const last = Number.parseInt(signature.slice(-2), 16);
  return last < 2 ? (`${signature.slice(0, -2)}${(27 + last).toString(16)}` as Hex) : signature;
}

/** An address in the form of an indexed argument of a log. */
export const topicOf = (address: Hex): Hex => pad(address).toLowerCase() as Hex;

/** A Transfer of the asset; null for any other log. */
export function transferOf(log: EvmLog): { readonly from: Hex; readonly to: Hex; readonly value: bigint } | null {
  const [kind, from, to] = log.topics;
  if (kind !== TRANSFER || from === undefined || to === undefined) return null;
  try {
    const [value] = decodeAbiParameters([{ type: 'uint256' }], log.data);
    return { from: addressOf(from), to: addressOf(to), value };
  } catch (error) {
    throw new ChainUnavailable('The node gave an invalid answer (a Transfer without an amount)', { cause: error });
  }
}

const addressOf = (topic: Hex): Hex => `0x${topic.slice(26)}`;

/** An executed authorization in the logs of a transaction, with its Transfer to `payee`, if it has one. */
interface CarriedOut {
  readonly authorizer: Hex;
  readonly nonce: Hex;
  /** Log index of AuthorizationUsed. */
  readonly index: number;
  readonly transfer: { readonly log: EvmLog; readonly value: bigint } | null;
}

/**
 * Finds the Transfer of each authorization in the ordered logs of one transaction. FiatToken emits AuthorizationUsed
 * before the Transfer. So the Transfer of an authorization is the first one from the authorizer to `payee` after it and
 * before the next authorization. A token that takes a fee emits more than one Transfer.
 */
export function carriedOut(logs: readonly EvmLog[], asset: Hex, payee: Hex): CarriedOut[] {
  const results: CarriedOut[] = [];
  let current: CarriedOut | null = null;
  const close = (): void => void (current && results.push(current));
  for (const log of logs) {
    if (log.address !== asset.toLowerCase()) continue;
    const [kind, authorizer, nonce] = log.topics;
    if (kind === AUTHORIZATION_USED && authorizer !== undefined && nonce !== undefined) {
      close();
      current = { authorizer: addressOf(authorizer), nonce, index: log.index, transfer: null };
      continue;
    }
    const transfer = transferOf(log);
    if (!current || current.transfer || !transfer) continue;
    if (transfer.from === current.authorizer && transfer.to === payee.toLowerCase())
      current = { ...current, transfer: { log, value: transfer.value } };
  }
  close();
  return results;
}
