import { useState, type SyntheticEvent, type ReactNode } from 'react';
import { api } from '../../../api/client.ts';
import {
  mayAdminister,
  type Limits as Found,
  type Notice,
  type Role,
  useLimits,
  useNotices,
} from '../../../api/organisation.ts';
import { Button } from '../../../ui/button.tsx';
import { Card } from '../../../ui/card.tsx';
import { Dialog } from '../../../ui/dialog.tsx';
import { ErrorNote } from '../../../ui/error-note.tsx';
import { Field, TextArea } from '../../../ui/field.tsx';
import { QueryView } from '../../../ui/query-view.tsx';
import { Time } from '../../../ui/time.tsx';
import { formatUsd } from '../../../ui/usd.ts';
import { useAct } from './act.ts';
import { BudgetBars, periodName } from '../../../account/budget-bars.tsx';
import { budgetDraft, BudgetFields, budgetsBody, hasFault } from '../../../account/budget-fields.tsx';

/** Budgets and rates of the account, and the notifications about them. `role` is the user's role. */
export function Limits({ role }: { readonly role: Role | null }): ReactNode {
  const limits = useLimits();
  const [changing, setChanging] = useState<'limits' | 'webhook' | null>(null);
  const action = mayAdminister(role) && (
    <div className="flex gap-2">
      <Button size="small" onClick={() => setChanging('webhook')}>
        Webhook
      </Button>
      <Button size="small" onClick={() => setChanging('limits')}>
        Change
      </Button>
    </div>
  );
  return (
    <Card title="Budgets and rates" action={action}>
      <QueryView query={limits}>
        {(found) => (
          <>
            <Shown of={found} />
            <Dialog title="Budgets and rates" open={changing === 'limits'} onClose={() => setChanging(null)}>
              <LimitsForm of={found} onDone={() => setChanging(null)} />
            </Dialog>
            <Dialog title="Webhook" open={changing === 'webhook'} onClose={() => setChanging(null)}>
              <WebhookForm onDone={() => setChanging(null)} />
            </Dialog>
          </>
        )}
      </QueryView>
    </Card>
  );
}

function Shown({ of }: { readonly of: Found }): ReactNode {
  const notices = useNotices();
  const { operator } = of;
  return (
    <div className="grid gap-6">
      {of.budgets.length > 0 ? (
        <BudgetBars of="The account" budgets={of.budgets} />
      ) : (
        <p className="text-soft">No budget: all keys together may spend what the balance has.</p>
      )}
      <TagBudgets budgets={of.tag_budgets} />
      {(operator.budgets.length > 0 || operator.tag_budgets.length > 0) && (
        <div>
          <h3 className="mb-3 text-sm font-medium text-soft">Set by the operator</h3>
          <BudgetBars of="The operator’s" budgets={operator.budgets} />
          <TagBudgets budgets={operator.tag_budgets} />
        </div>
      )}
      <p className="text-sm text-soft">
        All keys together: {rateOf('requests', of.requests_per_minute, operator.requests_per_minute)},{' '}
        {rateOf('tokens', of.tokens_per_minute, operator.tokens_per_minute)}.
      </p>
      {notices.data !== undefined && notices.data.length > 0 && <Notices of={notices.data} />}
    </div>
  );
}

type TagBudget = Found['tag_budgets'][number];

/** Budgets of calls with a tag, as bars. */
function TagBudgets({ budgets }: { readonly budgets: readonly TagBudget[] }): ReactNode {
  return budgets.map((budget) => (
    <div key={`${budget.tag} ${budget.limit_reset}`} className="mt-3">
      <h3 className="mb-1 text-sm break-words text-soft">Calls tagged {budget.tag}</h3>
      <BudgetBars of={budget.tag} budgets={[{ ...budget, limit_soft: false, limit_notify: [] }]} />
    </div>
  ));
}

/** Budgets of tags as lines of text, such as `feature=search 50 monthly`. */
const linesOf = (budgets: readonly TagBudget[]): string =>
  budgets.map(({ tag, limit, limit_reset: reset }) => `${tag} ${limit} ${reset}`).join('\n');

/** A line that is no budget is sent as it is, so that the API says what is wrong with it. */
const tagBudgetsOf = (text: string) =>
  text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [, tag, limit, reset] = /^\s*(.*\S)\s+([\d.]+)\s+(\w+)\s*$/.exec(line) ?? ['', line.trim(), '0', 'monthly'];
      return { tag, limit: Number(limit), limit_reset: reset as TagBudget['limit_reset'] };
    });

function rateOf(what: string, own: number | null, operators: number | null): string {
  const least = Math.min(own ?? Infinity, operators ?? Infinity);
  return least === Infinity ? `any number of ${what}` : `at most ${least.toLocaleString('en')} ${what} a minute`;
}

const SHOWN = 5;
const WHOSE = { key: 'a key', member: 'a member', account: 'the account', operator: 'the operator’s budget' } as const;

function Notices({ of }: { readonly of: readonly Notice[] }): ReactNode {
  return (
    <div>
      <h3 className="mb-2 text-sm font-medium text-soft">Notices of budgets</h3>
      <ul className="grid gap-1.5 text-sm">
        {of.slice(0, SHOWN).map((notice) => (
          <li key={`${notice.time} ${notice.percent} ${notice.of}`} className="flex flex-wrap justify-between gap-x-4">
            <span>
              {notice.percent} % of {formatUsd(Number(notice.limit_usd))},{' '}
              {periodName(notice.limit_reset).toLowerCase()}: {notice.key?.name ?? notice.member ?? WHOSE[notice.of]}
            </span>
            <span className="text-soft">
              <Time at={notice.time} />
            </span>
          </li>
        ))}
      </ul>
    </div>
  );
}

interface FormProps {
  readonly onDone: () => void;
}

const numberOrNull = (text: string) => (text.trim() === '' ? null : Number(text));

function LimitsForm({ of, onDone }: FormProps & { readonly of: Found }): ReactNode {
  const [draft, setDraft] = useState(() => budgetDraft(of.budgets));
  const [requests, setRequests] = useState(String(of.requests_per_minute ?? ''));
  const [tokens, setTokens] = useState(String(of.tokens_per_minute ?? ''));
  const [ofTags, setOfTags] = useState(linesOf(of.tag_budgets));
  const change = useAct(onDone);
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    if (hasFault(draft)) return;
    const rates = { requests_per_minute: numberOrNull(requests), tokens_per_minute: numberOrNull(tokens) };
    const changed = Object.entries(rates).filter(([name, rate]) => rate !== of[name as keyof typeof rates]);
    const body = {
      ...budgetsBody(draft, of.budgets),
      ...(ofTags === linesOf(of.tag_budgets) ? {} : { tag_budgets: tagBudgetsOf(ofTags) }),
      ...Object.fromEntries(changed),
    };
    if (Object.keys(body).length === 0) return onDone();
    change.mutate({
      what: 'Change the budgets and rates of the account.',
      send: (headers) => api.PATCH('/api/v1/limits', { body, headers }),
    });
  };
  return (
    <form onSubmit={submit} className="grid gap-5">
      <BudgetFields draft={draft} onChange={setDraft} />
      <TextArea
        label="Budgets of tags"
        hint="One in each line: the tag, USD, and daily, weekly or monthly. Calls with the tag beyond it are refused."
        rows={3}
        spellCheck={false}
        placeholder="feature=search 50 monthly"
        value={ofTags}
        onChange={({ target }) => setOfTags(target.value)}
      />
      <div className="grid grid-cols-2 items-end gap-4">
        <Field
          label="Requests a minute"
          type="number"
          min={1}
          placeholder="no limit"
          value={requests}
          onChange={({ target }) => setRequests(target.value)}
        />
        <Field
          label="Tokens a minute"
          type="number"
          min={1}
          placeholder="no limit"
          value={tokens}
          onChange={({ target }) => setTokens(target.value)}
        />
      </div>
      {change.error !== null && <ErrorNote error={change.error} />}
      <Button type="submit" tone="primary" busy={change.isPending} className="justify-self-end">
        Save
      </Button>
    </form>
  );
}

function WebhookForm({ onDone }: FormProps): ReactNode {
  const [url, setUrl] = useState('');
  const [secret, setSecret] = useState('');
  const change = useAct(onDone);
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    const body = { url: url.trim() === '' ? null : url.trim(), secret: secret === '' ? null : secret };
    change.mutate({
      what: 'Change the webhook of the budgets.',
      send: (headers) => api.PATCH('/api/v1/limits/webhook', { body, headers }),
    });
  };
  return (
    <form onSubmit={submit} className="grid gap-5">
      <Field
        label="Address"
        hint="Gets a message when a budget is spent to one of its percentages. Empty: no messages."
        type="url"
        placeholder="https://example.com/budgets"
        value={url}
        onChange={({ target }) => setUrl(target.value)}
      />
      <Field
        label="Secret"
        hint="Signs the messages: at least 16 characters. Empty: they are not signed."
        type="password"
        autoComplete="off"
        minLength={16}
        maxLength={256}
        value={secret}
        onChange={({ target }) => setSecret(target.value)}
      />
      {change.error !== null && <ErrorNote error={change.error} />}
      <Button type="submit" tone="primary" busy={change.isPending} className="justify-self-end">
        Save
      </Button>
    </form>
  );
}
