import { useMutation } from '@tanstack/react-query';
import { Download } from 'lucide-react';
import type { ReactNode } from 'react';
import { request } from '../api/request.ts';
import { Button } from './button.tsx';
import { saveFile } from './save-file.ts';
import { useToast } from './toast.tsx';

/**
 * A button that saves a CSV file of the API. A plain link could not send the header for the account that this tab acts
 * for.
 */
export function CsvButton({
  path,
  name,
  text = 'CSV',
  compact = false,
}: {
  readonly path: string;
  readonly name: string;
  readonly text?: string;
  readonly compact?: boolean;
}): ReactNode {
  const tell = useToast();
  const save = useMutation({
    mutationFn: async () => saveFile(name, await (await request(path)).blob()),
    onError: (error) => tell(`Not saved: ${error.message}`),
  });
  return (
    <Button {...(compact && { size: 'small' })} busy={save.isPending} onClick={() => save.mutate()}>
      <Download size={16} aria-hidden />
      {text}
    </Button>
  );
}
