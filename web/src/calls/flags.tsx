import type { ReactNode } from 'react';
import type { CallDetail } from '../api/own.ts';
import { Badge } from '../ui/badge.tsx';
import { formatNumber } from '../ui/number.ts';

/** The rules of `docs/reference/claims.md` that a reply can break, by the names that calls and providers have. */
const FLAGS: Readonly<Record<string, string>> = {
  usage_missing: 'The provider did not say what it used, so it was measured here.',
  usage_invalid: 'What the provider said of its use cannot be read, so it was measured here.',
  usage_implausible: 'What the provider claimed or delivered does not fit the call.',
  over_cap: 'The output went past its limit. It was measured, and the call costs no more than its lock.',
  malformed_reply: 'The reply does not have the form that its protocol asks for.',
  usage_unusual: 'The provider claims far more for a text than others do.',
};

export const flagName = (flag: string): string => flag.replaceAll('_', ' ');
/** A sentence that explains a flag. The empty text for one that this page does not know. */
export const flagText = (flag: string): string => FLAGS[flag] ?? '';

const claimText = ({ meter, claimed, most, least }: CallDetail['claims'][number]): string => {
  const unit = meter.replaceAll('_', ' ');
  const units = claimed === null ? `a ${unit} that is no number` : `${formatNumber(claimed)} ${unit}`;
  return most === undefined
    ? `Claimed: ${units}; at least ${formatNumber(least ?? 0)} counted.`
    : `Claimed: ${units}; at most ${formatNumber(most)} possible.`;
};

/** The rules that the provider of a call broke, each with what it meant for the call, and what it claimed. */
export function Flags({ flags, claims }: Pick<CallDetail, 'flags' | 'claims'>): ReactNode {
  if (flags.length === 0) return null;
  return (
    <ul aria-label="Rules that the provider broke" className="mt-4 grid gap-2">
      {flags.map((flag) => (
        <li key={flag} className="flex flex-wrap items-baseline gap-x-3 gap-y-1 text-sm text-soft">
          <Badge tone="warn">{flagName(flag)}</Badge>
          <span className="min-w-0 flex-1 basis-52">
            {[flagText(flag), ...(flag === 'usage_implausible' ? claims.map(claimText) : [])].join(' ')}
          </span>
        </li>
      ))}
    </ul>
  );
}
