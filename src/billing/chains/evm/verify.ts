import { ExactEvmScheme } from '@x402/evm/exact/facilitator';
import { decodeFunctionResult, encodeFunctionData, recoverTypedDataAddress } from 'viem';
import type { Abi, Hex } from 'viem';
import { ChainUnavailable, PaymentProblem, type SignedPayment } from '../chain.ts';
import {
  AUTHORIZATION_TYPES,
  isPlainSignature,
  withRecoveryByte,
  type AssetDomain,
  type Authorization,
  type EvmAsset,
} from './asset.ts';
import { Reverted, type EvmNode } from './rpc.ts';

/** An authorization with less time left could end before a block includes it (the same bound as in @x402/evm). */
const SECONDS_LEFT_MIN = 6n;

interface EvmVerifier {
  /** Rejects with PaymentProblem if the payment would not succeed now. */
  verify(payment: SignedPayment, authorization: Authorization, signature: Hex): Promise<void>;
}

/** Checks that an authorization is valid now. `now` is in epoch milliseconds. Throws PaymentProblem. */
export function checkTime({ validAfter, validBefore }: Authorization, now: number): void {
  const seconds = BigInt(Math.floor(now / 1000));
  if (validBefore < seconds + SECONDS_LEFT_MIN)
    throw new PaymentProblem(
      'payment_expired',
      `The authorization was valid until ${validBefore}, and the time is ${seconds} (seconds since 1970). Sign a new one`,
    );
  if (validAfter >= seconds)
    throw new PaymentProblem(
      'payment_verification_failed',
      `The authorization is valid only after ${validAfter}, and the time is ${seconds} (seconds since 1970)`,
    );
}

/**
 * The account of the signer: `eip155:<address>` if the key of the address itself signed, also for an EIP-7702 account.
 * Any other signature can only be that of a contract (ERC-1271), which is valid on its own chain only:
 * `eip155:<chain>:<address>`. This does not check that the contract accepts it.
 */
export async function payerAccount(domain: AssetDomain, authorization: Authorization, signature: Hex): Promise<string> {
  const { from } = authorization;
  if (isPlainSignature(signature)) {
    try {
      const signer = await recoverTypedDataAddress({
        domain,
        types: AUTHORIZATION_TYPES,
        primaryType: 'TransferWithAuthorization',
        message: authorization,
        signature: withRecoveryByte(signature),
      });
      if (signer.toLowerCase() === from) return `eip155:${from}`;
    } catch {
      // Numbers that are not on the curve are no signature of a key.
    }
  }
  return `eip155:${domain.chainId}:${from}`;
}

/** Verifies in this process with @x402/evm: typed data, contract wallets, and a simulated transfer. */
export function createEvmVerifier(node: EvmNode, asset: EvmAsset): EvmVerifier {
  return {
    async verify(payment, authorization, signature) {
      const { from, nonce, value } = authorization;
      // The library finds these faults too, but names them only if the chain has a Multicall3 contract.
      if (await asset.authorizationState(from, nonce, 'latest'))
        throw new PaymentProblem(
          'payment_verification_failed',
          `The authorization with nonce ${nonce} was used already. Sign a new one`,
        );
      const balance = await asset.balanceOf(from, 'latest');
      if (balance < value)
        throw new PaymentProblem(
          'payment_verification_failed',
          `${payment.payer} holds ${balance} of the asset, but the payment is ${value}`,
        );

      const { signer, fault } = librarySigner(node);
      const payload = { ...payment.payload, signature: withRecoveryByte(signature) };
      const requirements = { ...payment.requirements, network: payment.network as `${string}:${string}` };
      const { isValid, invalidReason } = await new ExactEvmScheme(signer).verify(
        { x402Version: 2, accepted: requirements, payload },
        requirements,
      );
      // The library reports an unreachable node as a wrong signature.
      if (fault()) throw fault()!;
      if (isValid) return;
      const expired = invalidReason?.includes('valid_before') === true;
      throw new PaymentProblem(
        expired ? 'payment_expired' : 'payment_verification_failed',
        `The payment would not succeed: ${invalidReason ?? 'no reason given'}`,
      );
    },
  };
}

/** The chain reader for @x402/evm. `fault`: the first ChainUnavailable of a request. */
function librarySigner(node: EvmNode) {
  let fault: ChainUnavailable | null = null;
  const noted = async <T>(answer: Promise<T>): Promise<T> => {
    try {
      return await answer;
    } catch (error) {
      if (error instanceof ChainUnavailable) fault ??= error;
      throw error;
    }
  };
  const never = async (): Promise<never> => {
    throw new Error('Verification sends nothing');
  };
  const signer = {
    getAddresses: () => [],
    getCode: ({ address }: { readonly address: Hex }) => noted(node.code(address, 'latest')),
    async readContract(args: {
      readonly address: Hex;
      readonly abi: readonly unknown[];
      readonly functionName: string;
      readonly args?: readonly unknown[];
    }) {
      const { address, functionName } = args;
      const call = { abi: args.abi as Abi, functionName, ...(args.args && { args: args.args }) };
      const data = await noted(
        node.call({ to: address, data: encodeFunctionData(call), gas: VERIFY_GAS_MAX }, 'latest'),
      );
      if (data === '0x' && functionName !== 'transferWithAuthorization')
        throw new Reverted(`${functionName}: no contract is there`);
      return decodeFunctionResult({ ...call, data });
    },
    verifyTypedData: never,
    writeContract: never,
    sendTransaction: never,
    waitForTransactionReceipt: never,
  };
  return { signer, fault: () => fault };
}

/**
 * The highest gas for the execution of an authorization, because the treasury pays it. USDC takes 90,000; the signature
 * of a passkey wallet takes up to 400,000 more.
 */
export const VERIFY_GAS_MAX = 600_000n;
