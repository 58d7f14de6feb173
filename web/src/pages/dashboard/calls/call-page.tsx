import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { useCall, useKeys } from '../../../api/own.ts';
import { CallFacts } from '../../../calls/call-facts.tsx';
import { CallTree } from '../../../calls/call-tree.tsx';
import { MoneyLines } from '../../../calls/money-lines.tsx';
import { Card } from '../../../ui/card.tsx';
import { Copy } from '../../../ui/copy.tsx';
import { exactUsd } from '../../../ui/exact-usd.ts';
import { QueryView } from '../../../ui/query-view.tsx';
import { Frame } from '../frame.tsx';
import { ReceiptCard } from './receipt-card.tsx';

export default function CallPage({ params }: { readonly params: Readonly<Record<string, string>> }): ReactNode {
  const id = decodeURIComponent(params['id'] ?? '');
  return (
    <Frame
      title="Call"
      above={
        <Link href="/dashboard/calls" className="link">
          All calls
        </Link>
      }
      lead={
        <span className="flex items-center gap-1 font-mono text-sm break-all">
          {id} <Copy text={id} label="Copy the id of the call" />
        </span>
      }
    >
      {() => <Detail id={id} />}
    </Frame>
  );
}

const callPage = (id: string): string => `/dashboard/calls/${encodeURIComponent(id)}`;

function Detail({ id }: { readonly id: string }): ReactNode {
  const keys = useKeys().data;
  return (
    <QueryView query={useCall(id)}>
      {(call) => (
        <div className="grid items-start gap-5 xl:grid-cols-2">
          <CallFacts
            call={call}
            keyName={keys?.find(({ hash }) => hash === call.api_key)?.label}
            parentPage={callPage}
          />
          <Card title="Money">
            <MoneyLines call={call} />
          </Card>
          {call.children.length > 0 && (
            <Card
              title="Calls under this call"
              action={<span className="text-sm text-soft">{exactUsd(call.run_cost)} in all</span>}
            >
              <CallTree call={call} />
            </Card>
          )}
          <ReceiptCard call={call} />
        </div>
      )}
    </QueryView>
  );
}
