import type { ReactNode } from 'react';
import { BOOT } from '../../../app/boot.ts';
import { Card } from '../../../ui/card.tsx';
import { CodeBlock } from '../../../ui/code-block.tsx';

/** How a person connects an assistant that takes no key. Nothing on a gateway where no program can sign in. */
export function ConnectAssistant(): ReactNode {
  if (!BOOT.authorization) return null;
  return (
    <Card title="Connect an assistant" className="mt-5">
      <div className="grid grid-cols-[minmax(0,1fr)] gap-4">
        <p className="max-w-[62ch] text-soft">
          Claude, ChatGPT, an editor or another MCP client needs no key. Add a connector with this address. The
          assistant opens a page here, on which you agree to a budget and an end. Then it stands above, and you can sign
          it out.
        </p>
        <CodeBlock code={`${BOOT.base_url}/mcp`} label="Address for all tools" />
      </div>
    </Card>
  );
}
