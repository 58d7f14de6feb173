import { isOffCurveAddress, type Address } from '@solana/kit';
import {
  addressOf,
  ASSOCIATED_TOKEN_PROGRAM,
  COMPUTE_BUDGET_PROGRAM,
  LIGHTHOUSE_PROGRAM,
  MEMO_PROGRAM,
  SYSTEM_PROGRAM,
  TOKEN_2022_PROGRAM,
  TOKEN_PROGRAM,
} from './address.ts';

const PROGRAMS: ReadonlySet<string> = new Set([
  SYSTEM_PROGRAM,
  TOKEN_PROGRAM,
  TOKEN_2022_PROGRAM,
  ASSOCIATED_TOKEN_PROGRAM,
  COMPUTE_BUDGET_PROGRAM,
  MEMO_PROGRAM,
  LIGHTHOUSE_PROGRAM,
]);

/** The reason why an address cannot get a payout; null if it can. */
export function receiverFault(text: string, treasury: Address, asset: Address): string | null {
  const address = addressOf(text);
  if (address === null) return 'a Solana address is 32 bytes in base58, such as the address of a wallet';
  if (address === treasury) return "this is the gateway's own treasury";
  if (address === asset || PROGRAMS.has(address))
    return 'this is the address of a program or of the token, not of a wallet';
  // A point off the curve has no private key. It belongs to a program or is a token account.
  return isOffCurveAddress(address)
    ? 'this is the address of a token account or of a program, not of a wallet: give the address of the wallet itself'
    : null;
}
