import type { ReactNode } from 'react';
import type { ApiKey } from '../../../api/own.ts';
import { Field, Select } from '../../../ui/field.tsx';
import { Fold } from '../../../ui/fold.tsx';
import { ServiceNames } from './service-names.tsx';

/** A key's settings in the form, as typed. */
interface KeyDraft {
  readonly label: string;
  /** USD. Empty means no limit. */
  readonly limit: string;
  readonly reset: '' | 'daily' | 'weekly' | 'monthly';
  /** `YYYY-MM-DD`. Empty means never. */
  readonly expires: string;
  /** One pattern per line. Empty means everything. */
  readonly services: string;
  /** USD for one call. Empty means that nobody is asked. */
  readonly askAbove: string;
  /** `name=value` pairs with commas between. Empty means none. */
  readonly tags: string;
  /** Empty: as the model says. */
  readonly continues: '' | 'true' | 'false';
}

export const NEW_KEY: KeyDraft = {
  label: '',
  limit: '',
  reset: '',
  expires: '',
  services: '',
  askAbove: '',
  tags: '',
  continues: '',
};

/** The last day on which a key works. A key that stops at 00:00 does not work on that day. */
const lastDay = (stops: string) => new Date(Date.parse(stops) - 1).toISOString().slice(0, 10);

export const draftOf = (key: ApiKey): KeyDraft => ({
  label: key.label,
  limit: key.limit === null ? '' : String(key.limit),
  reset: key.limit_reset ?? '',
  expires: key.expires_at === null ? '' : lastDay(key.expires_at),
  services: (key.allowed_services ?? []).join('\n'),
  askAbove: key.ask_above === null ? '' : String(key.ask_above),
  tags: tagsText(key.tags),
  continues: key.continue === null ? '' : key.continue ? 'true' : 'false',
});

export const tagsText = (tags: ApiKey['tags']): string =>
  Object.entries(tags ?? {})
    .map(([name, value]) => `${name}=${value}`)
    .join(', ');

/** The tags of a field; null for none. A part without a value is sent as it is, so that the API says what is wrong. */
export function tagsOf(text: string): Record<string, string> | null {
  const parts = text.split(',').filter((part) => part.trim() !== '');
  if (parts.length === 0) return null;
  return Object.fromEntries(
    parts.map((part) => {
      const [name = '', ...value] = part.split('=');
      return [name.trim(), value.join('=').trim()];
    }),
  );
}

/** The patterns of a field that has one on each line; null for none, which means everything. */
export const patternsOf = (text: string): string[] | null => {
  const lines = linesOf(text);
  return lines.length === 0 ? null : lines;
};

const linesOf = (text: string) => [...new Set(text.split(/[\s,]+/).filter((name) => name !== ''))];

/** The body of the request that creates the key. `faultOf` reports a limit that isn't a number. */
export const bodyOf = ({ label, limit, reset, expires, services, askAbove, tags, continues }: KeyDraft) => ({
  label: label.trim(),
  limit: limit.trim() === '' ? null : Number(limit),
  limit_reset: limit.trim() === '' || reset === '' ? null : reset,
  // The end of that day.
  expires_at: expires === '' ? null : new Date(Date.parse(`${expires}T00:00:00Z`) + 86_400_000).toISOString(),
  allowed_services: patternsOf(services),
  ask_above: askAbove.trim() === '' ? null : Number(askAbove),
  tags: tagsOf(tags),
  continue: continues === '' ? null : continues === 'true',
});

export const limitFault = ({ limit }: KeyDraft): string | null =>
  limit.trim() === '' || Number(limit) >= 0 ? null : 'The limit is a number of USD, such as 5 or 0.50.';

const RESETS = [
  { value: '', text: 'Once, for all time' },
  { value: 'daily', text: 'Each day' },
  { value: 'weekly', text: 'Each week' },
  { value: 'monthly', text: 'Each month' },
];

const CONTINUES = [
  { value: '', text: 'As the model says' },
  { value: 'true', text: 'Go on at the next model' },
  { value: 'false', text: 'End with an error' },
];

interface FieldsProps {
  readonly draft: KeyDraft;
  readonly onChange: (draft: KeyDraft) => void;
  /** Error messages by the API's names of the fields. */
  readonly faults?: Readonly<Record<string, string>>;
}

/** The form fields of a key. */
export function KeyFields(props: FieldsProps): ReactNode {
  return (
    <div className="grid gap-4">
      <Name {...props} />
      <Budget {...props} />
      <LastDay {...props} hint="The key stops at 24:00 UTC of this day. Empty: it does not stop." />
      <CallRules {...props} />
      <Services {...props} />
    </div>
  );
}

const FOLDED = ['label', 'ask_above', 'tags', 'continue'];

/** The same for a program that signs in, whose key must have an end. What most people leave as it is, is folded. */
export function GrantFields(props: FieldsProps): ReactNode {
  const { faults = {} } = props;
  return (
    <div className="grid gap-4">
      <Budget {...props} />
      <LastDay {...props} hint="The program is signed out at 24:00 UTC of this day." />
      <Services {...props} />
      <Fold name="Name, approvals, tags, streams" open={FOLDED.some((field) => field in faults)}>
        <div className="grid gap-4">
          <Name {...props} />
          <CallRules {...props} />
        </div>
      </Fold>
    </div>
  );
}

function Name({ draft, onChange, faults = {} }: FieldsProps): ReactNode {
  return (
    <Field
      label="Name"
      hint="For you: where the key is used."
      required
      maxLength={128}
      placeholder="my agent"
      value={draft.label}
      error={faults['label'] ?? null}
      onChange={({ target }) => onChange({ ...draft, label: target.value })}
    />
  );
}

function Budget({ draft, onChange, faults = {} }: FieldsProps): ReactNode {
  return (
    <div className="grid items-start gap-4 sm:grid-cols-2">
      <Field
        label="Spending limit in USD"
        hint="Calls beyond it are refused."
        inputMode="decimal"
        placeholder="no limit"
        value={draft.limit}
        error={limitFault(draft) ?? faults['limit'] ?? null}
        onChange={({ target }) => onChange({ ...draft, limit: target.value })}
      />
      <Select
        label="The limit counts"
        hint="Earlier spending counts. Weeks begin on Monday."
        options={RESETS}
        disabled={draft.limit.trim() === ''}
        value={draft.reset}
        onChange={({ target }) => onChange({ ...draft, reset: target.value as KeyDraft['reset'] })}
      />
    </div>
  );
}

function LastDay({ draft, onChange, faults = {}, hint }: FieldsProps & { readonly hint: string }): ReactNode {
  return (
    <Field
      label="Last day"
      hint={hint}
      type="date"
      value={draft.expires}
      error={faults['expires_at'] ?? null}
      onChange={({ target }) => onChange({ ...draft, expires: target.value })}
    />
  );
}

function CallRules({ draft, onChange, faults = {} }: FieldsProps): ReactNode {
  return (
    <>
      <Field
        label="Ask a person above, in USD for one call"
        hint="A call that may cost more waits on the page Approvals."
        inputMode="decimal"
        placeholder="never"
        value={draft.askAbove}
        error={faults['ask_above'] ?? null}
        onChange={({ target }) => onChange({ ...draft, askAbove: target.value })}
      />
      <div className="grid items-start gap-4 sm:grid-cols-2">
        <Field
          label="Tags of all its calls"
          hint="They group your spending. No request changes them."
          placeholder="team=search, feature=summary"
          value={draft.tags}
          error={faults['tags'] ?? null}
          onChange={({ target }) => onChange({ ...draft, tags: target.value })}
        />
        <Select
          label="A stream that breaks off"
          hint="Where its request does not say it."
          options={CONTINUES}
          value={draft.continues}
          onChange={({ target }) => onChange({ ...draft, continues: target.value as KeyDraft['continues'] })}
        />
      </div>
    </>
  );
}

function Services({ draft, onChange, faults = {} }: FieldsProps): ReactNode {
  return (
    <ServiceNames
      value={draft.services}
      error={faults['allowed_services'] ?? null}
      onChange={(services) => onChange({ ...draft, services })}
    />
  );
}
