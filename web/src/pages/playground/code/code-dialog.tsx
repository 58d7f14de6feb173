import { useState, type ReactNode } from 'react';
import { Link } from 'wouter';
import { CodeBlock } from '../../../ui/code-block.tsx';
import { Dialog } from '../../../ui/dialog.tsx';
import { Tabs } from '../../../ui/tabs.tsx';
import type { Sample } from './samples.ts';

/** Code that does what the page does. */
export function CodeDialog({
  open,
  onClose,
  samples,
}: {
  readonly open: boolean;
  readonly onClose: () => void;
  readonly samples: () => readonly Sample[];
}): ReactNode {
  return (
    <Dialog title="The same from code" wide open={open} onClose={onClose}>
      <Code make={samples} />
    </Dialog>
  );
}

function Code({ make }: { readonly make: () => readonly Sample[] }): ReactNode {
  const samples = make();
  const [id, setId] = useState(samples[0]!.id);
  const { name, code, note } = samples.find((sample) => sample.id === id) ?? samples[0]!;
  return (
    <Tabs label="Client" tabs={samples} chosen={id} onChoose={setId}>
      <div className="grid max-h-[60vh] grid-cols-[minmax(0,1fr)] gap-3 overflow-y-auto">
        <CodeBlock code={code} label={name} />
        {note !== undefined && <p className="text-sm text-soft">{note}</p>}
        {id !== 'sent' && (
          <p className="text-sm text-soft">
            <code className="font-mono">KEY</code> is an API key of yours:{' '}
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
