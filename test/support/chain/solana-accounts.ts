import { createHash } from 'node:crypto';
import bs58 from 'bs58';
import { address, isOffCurveAddress } from '@solana/kit';

export const DEVNET = 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1';
export const DEVNET_GENESIS = 'EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG';
/** The mint of USDC on devnet. */
export const USDC = '4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU';
export const TOKEN_PROGRAM = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA';
const ATA_PROGRAM = 'ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL';

/** The address of a wallet's associated token account. */
export function ataOf(owner: string, mint: string = USDC): string {
  const seeds = [owner, TOKEN_PROGRAM, mint].map((one) => bs58.decode(one));
  for (let bump = 255; bump >= 0; bump -= 1) {
    const hash = createHash('sha256');
    for (const seed of seeds) hash.update(seed);
    const found = bs58.encode(
      hash.update(Uint8Array.of(bump)).update(bs58.decode(ATA_PROGRAM)).update('ProgramDerivedAddress').digest(),
    );
    if (isOffCurveAddress(address(found))) return found;
  }
  throw new Error('no associated account');
}

/** Reads the bytes of a token account. */
export function tokenAccountOf(data: Uint8Array): { mint: string; owner: string; amount: bigint } {
  return {
    mint: bs58.encode(data.subarray(0, 32)),
    owner: bs58.encode(data.subarray(32, 64)),
    amount: Buffer.from(data).readBigUInt64LE(64),
  };
}

/** Makes the bytes of an ordinary token account. */
export function tokenAccountBytes(mint: string, owner: string, amount: bigint): Uint8Array {
  const data = Buffer.alloc(165);
  data.set(bs58.decode(mint), 0);
  data.set(bs58.decode(owner), 32);
  data.writeBigUInt64LE(amount, 64);
  data[108] = 1;
  return Uint8Array.from(data);
}

/** Makes the bytes of a mint. */
export function mintBytes(authority: string, supply: bigint, decimals: number): Uint8Array {
  const data = Buffer.alloc(82);
  data.writeUInt32LE(1, 0);
  data.set(bs58.decode(authority), 4);
  data.writeBigUInt64LE(supply, 36);
  data[44] = decimals;
  data[45] = 1;
  return Uint8Array.from(data);
}
