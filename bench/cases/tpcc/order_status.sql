\set w random(1, :warehouses)
\set d random(1, 10)
\set c random(1, :customers)
BEGIN;
SELECT c_balance, c_first, c_middle, c_last FROM customer WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c;
SELECT coalesce(max(o_id), 0) AS o FROM orders WHERE o_w_id = :w AND o_d_id = :d AND o_c_id = :c \gset
SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line
 WHERE ol_w_id = :w AND ol_d_id = :d AND ol_o_id = :o;
END;
