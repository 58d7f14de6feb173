import { X } from 'lucide-react';
import { useEffect, useId, useRef, type ReactNode } from 'react';

/** A dialog at the right edge of the screen, for settings of the content beside it. */
export function Drawer({
  title,
  open,
  onClose,
  children,
}: {
  readonly title: string;
  readonly open: boolean;
  readonly onClose: () => void;
  readonly children: ReactNode;
}): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    if (open) dialog.current?.showModal();
    else dialog.current?.close();
  }, [open]);
  return (
    <dialog
      ref={dialog}
      aria-labelledby={id}
      onClose={onClose}
      closedby="any"
      className="my-0 ml-auto mr-0 h-dvh max-h-none w-[min(26rem,100vw)] max-w-none overflow-y-auto border-l border-line bg-card p-0 text-ink shadow-2xl"
    >
      {open && (
        <>
          <div className="sticky top-0 z-10 flex items-center justify-between gap-4 border-b border-line bg-card py-3 pl-5 pr-3">
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
