import { useQuery } from '@tanstack/react-query';
import { BadgeCheck, CircleAlert, ShieldQuestion } from 'lucide-react';
import { useState, type ReactNode } from 'react';
import type { CallDetail } from '../../../api/own.ts';
import { Card } from '../../../ui/card.tsx';
import { Copy } from '../../../ui/copy.tsx';
import { TextArea } from '../../../ui/field.tsx';
import { exactMicroUsd } from '../../../ui/exact-usd.ts';
import { Fold } from '../../../ui/fold.tsx';
import { Skeleton } from '../../../ui/skeleton.tsx';
import { Time } from '../../../ui/time.tsx';
import { verifyReceipt, type Verdict } from './receipt.ts';

/** The receipt of a call, and whether its signature is valid. The reader can also paste and check another receipt. */
export function ReceiptCard({ call }: { readonly call: CallDetail }): ReactNode {
  const { receipt } = call;
  // The receipt may come while the page is open. Until the reader changes the text, it is the receipt.
  const [changed, setChanged] = useState<string | null>(null);
  const text = changed ?? receipt ?? '';
  return (
    <Card title="Receipt" {...(receipt === null ? {} : { action: <Copy text={receipt} label="Copy the receipt" /> })}>
      {receipt === null ? (
        <p className="text-soft">
          {call.state === 'held'
            ? 'The receipt comes with the charge, when the call is over.'
            : call.children.length > 0
              ? 'This call was not charged itself. Each call under it has its own receipt.'
              : 'This call was not charged, so there is no receipt.'}
        </p>
      ) : (
        <>
          <Judged text={text} call={call} />
          <div className="mt-4">
            <Fold name="Show or change the text">
              <TextArea
                label="Receipt as text"
                hint="Whoever has this text can check it. Change a letter to see it fail."
                rows={6}
                spellCheck={false}
                value={text}
                onChange={({ target }) => setChanged(target.value)}
              />
            </Fold>
          </div>
        </>
      )}
    </Card>
  );
}

function Judged({ text, call }: { readonly text: string; readonly call: CallDetail }): ReactNode {
  const verdict = useQuery({
    queryKey: ['receipt', text],
    queryFn: () => verifyReceipt(text),
    staleTime: Infinity,
  }).data;
  if (verdict === undefined) return <Skeleton className="h-12 w-full" />;
  return (
    <div role="status">
      <Sign verdict={verdict} call={call} />
      {verdict.state === 'genuine' && (
        <dl className="mt-4 grid gap-x-6 gap-y-2 text-sm sm:grid-cols-[auto_1fr]">
          <Fact name="Call" value={<span className="font-mono break-all">{verdict.facts.id}</span>} />
          <Fact name="Account" value={<span className="font-mono break-all">{verdict.facts.account}</span>} />
          <Fact name="Locked" value={exactMicroUsd(Number(verdict.facts.lock))} />
          <Fact name="Charged" value={exactMicroUsd(Number(verdict.facts.charged))} />
          {verdict.facts.tags !== undefined && (
            <Fact
              name="Tags"
              value={Object.entries(verdict.facts.tags)
                .map(([name, value]) => `${name}=${value}`)
                .join(', ')}
            />
          )}
          <Fact name="Signed" value={<Time at={verdict.facts.time} exact />} />
          <Fact name="Key" value={<span className="font-mono break-all">{verdict.kid}</span>} />
        </dl>
      )}
    </div>
  );
}

const Fact = ({ name, value }: { readonly name: string; readonly value: ReactNode }): ReactNode => (
  <div className="contents">
    <dt className="text-soft">{name}</dt>
    <dd className="min-w-0">{value}</dd>
  </div>
);

function Sign({ verdict, call }: { readonly verdict: Verdict; readonly call: CallDetail }): ReactNode {
  if (verdict.state === 'unjudged')
    return (
      <p className="flex gap-3 rounded-lg bg-warn-wash px-4 py-3 text-warn">
        <ShieldQuestion size={20} aria-hidden className="mt-0.5 shrink-0" />
        <span>It was not checked. {verdict.reason}</span>
      </p>
    );
  const { id, charged } = verdict.state === 'genuine' ? verdict.facts : { id: '', charged: '' };
  const differs = id !== call.id || Number(charged) !== call.cost_micro_usdc;
  if (verdict.state === 'forged' || differs)
    return (
      <p className="flex gap-3 rounded-lg bg-bad-wash px-4 py-3 text-bad">
        <CircleAlert size={20} aria-hidden className="mt-0.5 shrink-0" />
        <span>
          <b>Not genuine.</b>{' '}
          {verdict.state === 'forged' ? verdict.reason : 'It is signed by this gateway, but for another call.'}
        </span>
      </p>
    );
  return (
    <p className="flex gap-3 rounded-lg bg-accent-wash px-4 py-3 text-accent">
      <BadgeCheck size={20} aria-hidden className="mt-0.5 shrink-0" />
      <span>
        <b>Genuine.</b> Your browser checked the signature against the published key of the gateway.
      </span>
    </p>
  );
}
