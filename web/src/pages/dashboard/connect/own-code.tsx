import { useState, type ReactNode } from 'react';
import { Link } from 'wouter';
import { BOOT } from '../../../app/boot.ts';
import { Button } from '../../../ui/button.tsx';
import { CodeBlock } from '../../../ui/code-block.tsx';
import { Dialog } from '../../../ui/dialog.tsx';
import { NewKeyForm } from '../keys/new-key.tsx';

/** The two variables that every SDK of OpenAI reads, so that a program needs no change. */
export function OwnCode({ mayMakeKeys }: { readonly mayMakeKeys: boolean }): ReactNode {
  const [making, setMaking] = useState(false);
  const [key, setKey] = useState<string | null>(null);
  const variables = `export OPENAI_BASE_URL=${BOOT.base_url}/api/v1\nexport OPENAI_API_KEY=${key ?? '$KEY'}`;
  return (
    <>
      <ol className="list-decimal space-y-3 pl-5">
        <li>
          {mayMakeKeys
            ? 'Make a key for your program.'
            : 'Take a key that you have, because this session may not make one.'}
          {mayMakeKeys && (
            <div className="mt-2 -ml-5">
              <Button tone={key === null ? 'primary' : 'plain'} onClick={() => setMaking(true)}>
                {key === null ? 'Make a key' : 'Make another key'}
              </Button>
            </div>
          )}
        </li>
        <li>
          Set these where it runs. Programs that use the SDK of OpenAI, in any language, need no other change.
          <div className="mt-2 -ml-5 grid grid-cols-[minmax(0,1fr)] gap-2">
            {key !== null && (
              <p className="rounded-lg bg-warn-wash px-3 py-2 text-warn">
                Copy it now. It cannot be shown again: the gateway keeps only the key's hash.
              </p>
            )}
            <CodeBlock code={variables} label="What to set" />
          </div>
        </li>
        <li>
          Choose a model in the{' '}
          <Link href="/marketplace" className="link">
            marketplace
          </Link>
          . Its page has code for other clients too. Calls appear under{' '}
          <Link href="/dashboard/calls" className="link">
            Calls
          </Link>
          .
        </li>
      </ol>
      <Dialog title="New key" open={making} onClose={() => setMaking(false)}>
        <NewKeyForm
          onMade={(text) => {
            setKey(text);
            setMaking(false);
          }}
        />
      </Dialog>
    </>
  );
}
