import { X } from 'lucide-react';
import { useEffect, useId, useRef, type ReactNode } from 'react';

/** The fields of a form. */
const FIELDS = ':is(input, textarea, select):not(:disabled)';

/**
 * A modal dialog. It uses the platform's `<dialog>`, which traps the focus and closes with Escape. The first field has
 * the focus when it opens.
 */
export function Dialog({
  title,
  open,
  wide = false,
  onClose,
  children,
}: {
  readonly title: string;
  readonly open: boolean;
  /** For content such as code and tables. */
  readonly wide?: boolean;
  readonly onClose: () => void;
  readonly children: ReactNode;
}): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    if (!open) return dialog.current?.close();
    dialog.current?.showModal();
    // The platform would choose the button that closes it.
    dialog.current?.querySelector<HTMLElement>(FIELDS)?.focus();
  }, [open]);
  return (
    <dialog
      ref={dialog}
      aria-labelledby={id}
      onClose={onClose}
      className={`m-auto ${wide ? 'w-[min(48rem,calc(100vw-2rem))]' : 'w-[min(34rem,calc(100vw-2rem))]'} rounded-xl border border-line bg-card p-0 text-left text-ink shadow-2xl`}
    >
      {open && (
        <>
          <div className="flex items-center justify-between gap-4 border-b border-line py-3 pl-5 pr-3">
            <h2 id={id} className="text-lg">
              {title}
            </h2>
            <button
              type="button"
              aria-label="Close"
              onClick={() => dialog.current?.close()}
              className="grid size-9 place-items-center rounded-md text-soft hover:bg-sunk hover:text-ink"
            >
              <X size={18} aria-hidden />
            </button>
          </div>
          <div className="p-5">{children}</div>
        </>
      )}
    </dialog>
  );
}
