import { Check, Copy as CopyIcon } from 'lucide-react';
import { useState, type ReactNode } from 'react';
import { useToast } from './toast.tsx';

const SHOWN_MS = 1_600;

/** A button that copies a text. `label` says what it copies: "Copy the key". */
export function Copy({ text, label }: { readonly text: string; readonly label: string }): ReactNode {
  const [copied, setCopied] = useState(false);
  const toast = useToast();
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setCopied(true);
      toast('Copied');
      setTimeout(() => setCopied(false), SHOWN_MS);
    } catch {
      toast('The browser did not let this page copy. Select the text and copy it.');
    }
  };
  const Icon = copied ? Check : CopyIcon;
  return (
    <button
      type="button"
      aria-label={label}
      title={label}
      onClick={() => void copy()}
      className="grid size-8 shrink-0 place-items-center rounded-md text-soft hover:bg-sunk hover:text-ink"
    >
      <Icon size={16} aria-hidden className={copied ? 'text-accent' : ''} />
    </button>
  );
}
