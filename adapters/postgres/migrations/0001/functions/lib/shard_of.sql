-- Returns the index of an id's shard, as core.ShardOf does: crc32 by the polynomial of IEEE of the
-- id's bytes, modulo the number of shards. It goes by half bytes, with a table of 16 entries.
CREATE FUNCTION {schema}.shard_of(p_id text, p_shards int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS {$}
DECLARE
  c_table CONSTANT bigint[] := '{
    0, 498536548, 997073096, 651767980, 1994146192, 1802195444, 1303535960, 1342533948,
    3988292384, 4027552580, 3604390888, 3412177804, 2607071920, 2262029012, 2685067896, 3183342108
  }';
  v_id  bytea := convert_to(p_id, 'UTF8');
  v_sum bigint := 4294967295;
BEGIN
  FOR i IN 0..octet_length(v_id) - 1 LOOP
    v_sum := v_sum # get_byte(v_id, i);
    v_sum := (v_sum >> 4) # c_table[(v_sum & 15) + 1];
    v_sum := (v_sum >> 4) # c_table[(v_sum & 15) + 1];
  END LOOP;
  RETURN (v_sum # 4294967295) % p_shards;
END {$};
