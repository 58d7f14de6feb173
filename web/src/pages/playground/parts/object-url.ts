import { useEffect, useMemo, useState } from 'react';

/** Decodes base64. Returns null if the text isn't base64. */
export function bytesOf(base64: string): Uint8Array<ArrayBuffer> | null {
  try {
    const binary = atob(base64);
    const bytes = new Uint8Array(binary.length);
    for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at);
    return bytes;
  } catch {
    return null;
  }
}

/**
 * An object URL for bytes, valid while the component is shown. null before the first effect, and if the text isn't
 * base64.
 */
export function useObjectUrl(base64: string, mediaType: string): string | null {
  const blob = useMemo(() => {
    const bytes = bytesOf(base64);
    return bytes === null ? null : new Blob([bytes], { type: mediaType });
  }, [base64, mediaType]);
  return useBlobUrl(blob);
}

/** The same for a file or an answer; null for none. */
export function useBlobUrl(blob: Blob | null): string | null {
  const [url, setUrl] = useState<string | null>(null);
  useEffect(() => {
    if (blob === null) return;
    const made = URL.createObjectURL(blob);
    let gone = false;
    queueMicrotask(() => {
      if (!gone) setUrl(made);
    });
    return () => {
      gone = true;
      URL.revokeObjectURL(made);
    };
  }, [blob]);
  return url;
}
