import { createContext, useCallback, useContext, useRef, useState, type ReactNode } from 'react';

const SHOWN_MS = 4_000;

const ToastContext = createContext<(text: string) => void>(() => {});

/** Shows a short sentence for a few seconds. Screen readers announce it. */
export const useToast = (): ((text: string) => void) => useContext(ToastContext);

export function ToastProvider({ children }: { readonly children: ReactNode }): ReactNode {
  const [text, setText] = useState('');
  const timer = useRef(0);
  const show = useCallback((shown: string) => {
    clearTimeout(timer.current);
    setText(shown);
    timer.current = window.setTimeout(() => setText(''), SHOWN_MS);
  }, []);
  return (
    <ToastContext value={show}>
      {children}
      <div role="status" className="pointer-events-none fixed inset-x-0 bottom-6 z-50 flex justify-center px-4">
        {text !== '' && <p className="rounded-lg bg-ink px-4 py-2.5 text-sm text-ground shadow-lg">{text}</p>}
      </div>
    </ToastContext>
  );
}
