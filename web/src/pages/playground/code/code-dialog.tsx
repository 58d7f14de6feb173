import type { ReactNode } from 'react';
import { CodeTabs } from '../../../code/code-tabs.tsx';
import type { Snippet } from '../../../code/snippet.ts';
import { Dialog } from '../../../ui/dialog.tsx';

/** A dialog with code that does the same as the page. The code is made when the dialog opens. */
export function CodeDialog({
  open,
  onClose,
  samples,
}: {
  readonly open: boolean;
  readonly onClose: () => void;
  readonly samples: () => readonly Snippet[];
}): ReactNode {
  return (
    <Dialog title="The same from code" wide open={open} onClose={onClose}>
      <Code make={samples} />
    </Dialog>
  );
}

function Code({ make }: { readonly make: () => readonly Snippet[] }): ReactNode {
  return (
    <div className="max-h-[70vh] overflow-y-auto">
      <CodeTabs snippets={make()} />
    </div>
  );
}
