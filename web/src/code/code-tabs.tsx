import { useState, type ReactNode } from 'react';
import { Link } from '../app/link.tsx';
import { CodeBlock } from '../ui/code-block.tsx';
import { Tabs } from '../ui/tabs.tsx';
import type { Snippet } from './snippet.ts';

/** Code for several clients, one tab each. If the code needs a key, it shows where to get one. */
export function CodeTabs({ snippets }: { readonly snippets: readonly Snippet[] }): ReactNode {
  const [chosen, choose] = useState('');
  const shown = snippets.find(({ id }) => id === chosen) ?? snippets[0]!;
  return (
    <Tabs label="Client" tabs={snippets} chosen={shown.id} onChoose={choose}>
      <div className="grid grid-cols-[minmax(0,1fr)] gap-3">
        {shown.note !== undefined && <p className="text-sm text-soft">{shown.note}</p>}
        <CodeBlock code={shown.code} label={`Code for ${shown.name}`} />
        {NAMES_KEY.test(shown.code) && (
          <p className="text-sm text-soft">
            <code className="font-mono">{NAMES_KEY.exec(shown.code)![0]}</code> is an API key of yours:{' '}
            <Link href="/dashboard/keys" className="link">
              make one
            </Link>
            .
          </p>
        )}
      </div>
    </Tabs>
  );
}

/** Matches the placeholders for the key in the code of all clients. */
const NAMES_KEY = /\b(?:KEY|TOLLGATE_API_KEY)\b|svc-sk-…/;
