import type { Meter } from '#billing/amounts';

/** Violations that are counted per provider. */
export const PROVIDER_FLAGS = [
  'usage_missing',
  'usage_invalid',
  'usage_implausible',
  'over_cap',
  'malformed_reply',
  'usage_unusual',
] as const;

type ProviderFlag = (typeof PROVIDER_FLAGS)[number];

/** A meter of the usage, all tokens of the call, or the pixels of an image. */
type ClaimedMeter = Meter | 'total' | 'pixel';

/** A claim that the work does not explain, and the bound that the gateway counted. All in whole units. */
export type ImplausibleClaim = {
  readonly meter: ClaimedMeter;
  /** null for a claim that is no number. */
  readonly claimed: number | null;
} & ({ readonly most: number } | { readonly least: number });

/** The flag `usage_implausible`. `flagClaim` makes it, so that none is without numbers. */
interface ImplausibleUse {
  readonly claims: readonly [ImplausibleClaim, ...ImplausibleClaim[]];
}

/** A flag as the reader of a reply raises it. */
export type RaisedFlag = Exclude<ProviderFlag, 'usage_implausible'> | ImplausibleUse;

export const NO_FLAGS: readonly RaisedFlag[] = [];

/** `flags` with one more claim. All claims of a reply are one flag. */
export function flagClaim(flags: readonly RaisedFlag[], claim: ImplausibleClaim): readonly RaisedFlag[] {
  if (!isImplausible(flags)) return [...flags, { claims: [claim] }];
  return flags.map((flag) => (typeof flag === 'string' ? flag : { claims: [...flag.claims, claim] }));
}

/** `flags` themselves if the claim is at most `most`, else with the claim. */
export const flagBeyond = (
  flags: readonly RaisedFlag[],
  meter: ClaimedMeter,
  claimed: number,
  most: number,
): readonly RaisedFlag[] => (claimed <= most ? flags : flagClaim(flags, { meter, claimed, most }));

export const isImplausible = (flags: readonly RaisedFlag[]): boolean => flags.some((flag) => typeof flag !== 'string');

/** The flags of a reply as figures, records and the log have them. */
export interface NamedFlags {
  readonly flags: readonly ProviderFlag[];
  /** Of `usage_implausible`. Absent without it. */
  readonly claims?: readonly ImplausibleClaim[];
}

const NONE: NamedFlags = { flags: [] };

export function nameFlags(raised: readonly RaisedFlag[]): NamedFlags {
  if (raised.length === 0) return NONE;
  const flags = raised.map((flag) => (typeof flag === 'string' ? flag : 'usage_implausible'));
  const claims = raised.flatMap((flag) => (typeof flag === 'string' ? [] : flag.claims));
  return claims.length === 0 ? { flags } : { flags, claims };
}
