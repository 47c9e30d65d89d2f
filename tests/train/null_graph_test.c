/* Functions of graphs and of training with a null graph, which mr_graph_new returns without memory: none crashes, so
 * that a program may check for it once. */
#include "tests/test.h"

#include <millrace/millrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLS(X)                                                                                                       \
    X(mr_get_variable_, nullptr, nullptr, (mr_shape){0}, nullptr)                                                      \
    X(mr_variable_parts, nullptr, (mr_variable){0})                                                                    \
    X(mr_graph_push_variable_scope_, nullptr, nullptr, nullptr)                                                        \
    X(mr_graph_pop_variable_scope, nullptr)                                                                            \
    X(mr_graph_variable_scope, nullptr)                                                                                \
    X(mr_graph_reuse_variables, nullptr)                                                                               \
    X(mr_variable_read_value, nullptr, (mr_variable){0})                                                               \
    X(mr_variable_assign, nullptr, (mr_variable){0}, (mr_output){0})                                                   \
    X(mr_variable_assign_add, nullptr, (mr_variable){0}, (mr_output){0})                                               \
    X(mr_variable_assign_sub, nullptr, (mr_variable){0}, (mr_output){0})                                               \
    X(mr_variable_assign_with, nullptr, (mr_variable){0}, (mr_output){0}, nullptr)                                     \
    X(mr_variable_assign_add_with, nullptr, (mr_variable){0}, (mr_output){0}, nullptr)                                 \
    X(mr_variable_assign_sub_with, nullptr, (mr_variable){0}, (mr_output){0}, nullptr)                                 \
    X(mr_variable_scatter, nullptr, (mr_variable){0}, (mr_scatter_kind){0}, (mr_output){0}, (mr_output){0})            \
    X(mr_variable_count_up_to, nullptr, (mr_variable){0}, 0)                                                           \
    X(mr_variable_initialized_value, nullptr, (mr_variable){0})                                                        \
    X(mr_variable_is_initialized, nullptr, (mr_variable){0})                                                           \
    X(mr_report_uninitialized_variables, nullptr, (mr_variables){0}, nullptr)                                          \
    X(mr_assert_variables_initialized, nullptr, (mr_variables){0})                                                     \
    X(mr_variables_initializer, nullptr, (mr_variables){0}, nullptr)                                                   \
    X(mr_activation_relu, nullptr, (mr_output){0})                                                                     \
    X(mr_activation_sigmoid, nullptr, (mr_output){0})                                                                  \
    X(mr_activation_tanh, nullptr, (mr_output){0})                                                                     \
    X(mr_activation_relu6, nullptr, (mr_output){0})                                                                    \
    X(mr_activation_leaky_relu, nullptr, (mr_output){0})                                                               \
    X(mr_activation_crelu, nullptr, (mr_output){0})                                                                    \
    X(mr_activation_elu, nullptr, (mr_output){0})                                                                      \
    X(mr_activation_selu, nullptr, (mr_output){0})                                                                     \
    X(mr_activation_swish, nullptr, (mr_output){0})                                                                    \
    X(mr_activation_softplus, nullptr, (mr_output){0})                                                                 \
    X(mr_activation_log_sigmoid, nullptr, (mr_output){0})                                                              \
    X(mr_activation_softsign, nullptr, (mr_output){0})                                                                 \
    X(mr_activation_hard_sigmoid, nullptr, (mr_output){0})                                                             \
    X(mr_activation_softmax, nullptr, (mr_output){0})                                                                  \
    X(mr_activation_log_softmax, nullptr, (mr_output){0})                                                              \
    X(mr_xw_plus_b, nullptr, (mr_output){0}, (mr_output){0}, (mr_output){0})                                           \
    X(mr_relu_layer, nullptr, (mr_output){0}, (mr_output){0}, (mr_output){0})                                          \
    X(mr_layer_dense_, nullptr, (mr_output){0}, nullptr)                                                               \
    X(mr_layer_prelu_, nullptr, (mr_output){0}, nullptr)                                                               \
    X(mr_layer_conv1d_, nullptr, (mr_output){0}, nullptr)                                                              \
    X(mr_layer_conv2d_, nullptr, (mr_output){0}, nullptr)                                                              \
    X(mr_layer_conv3d_, nullptr, (mr_output){0}, nullptr)                                                              \
    X(mr_layer_conv2d_transpose_, nullptr, (mr_output){0}, nullptr)                                                    \
    X(mr_layer_conv3d_transpose_, nullptr, (mr_output){0}, nullptr)                                                    \
    X(mr_layer_separable_conv1d_, nullptr, (mr_output){0}, nullptr)                                                    \
    X(mr_layer_separable_conv2d_, nullptr, (mr_output){0}, nullptr)                                                    \
    X(mr_layer_depthwise_conv2d_, nullptr, (mr_output){0}, nullptr)                                                    \
    X(mr_layer_batch_normalization_, nullptr, (mr_output){0}, nullptr)                                                 \
    X(mr_layer_layer_norm_, nullptr, (mr_output){0}, nullptr)                                                          \
    X(mr_layer_max_pool1d_, nullptr, (mr_output){0}, nullptr)                                                          \
    X(mr_layer_max_pool_, nullptr, (mr_output){0}, nullptr)                                                            \
    X(mr_layer_max_pool3d_, nullptr, (mr_output){0}, nullptr)                                                          \
    X(mr_layer_average_pool1d_, nullptr, (mr_output){0}, nullptr)                                                      \
    X(mr_layer_average_pool_, nullptr, (mr_output){0}, nullptr)                                                        \
    X(mr_layer_average_pool3d_, nullptr, (mr_output){0}, nullptr)                                                      \
    X(mr_layer_global_average_pool, nullptr, (mr_output){0})                                                           \
    X(mr_layer_global_max_pool, nullptr, (mr_output){0})                                                               \
    X(mr_layer_flatten_, nullptr, (mr_output){0}, nullptr)                                                             \
    X(mr_layer_dropout_, nullptr, (mr_output){0}, nullptr)                                                             \
    X(mr_embedding_lookup_, nullptr, (mr_variables){0}, (mr_output){0}, nullptr)                                       \
    X(mr_embedding_lookup_sparse_, nullptr, (mr_variables){0}, (mr_output){0}, (mr_output){0}, (mr_output){0},         \
      nullptr)                                                                                                         \
    X(mr_loss_absolute_difference_, nullptr, (mr_output){0}, (mr_output){0}, nullptr)                                  \
    X(mr_loss_cosine_distance_, nullptr, (mr_output){0}, (mr_output){0}, nullptr)                                      \
    X(mr_loss_hinge_, nullptr, (mr_output){0}, (mr_output){0}, nullptr)                                                \
    X(mr_loss_huber_, nullptr, (mr_output){0}, (mr_output){0}, nullptr)                                                \
    X(mr_loss_log_, nullptr, (mr_output){0}, (mr_output){0}, nullptr)                                                  \
    X(mr_loss_mean_squared_error_, nullptr, (mr_output){0}, (mr_output){0}, nullptr)                                   \
    X(mr_loss_mean_pairwise_squared_error_, nullptr, (mr_output){0}, (mr_output){0}, nullptr)                          \
    X(mr_loss_sigmoid_cross_entropy_, nullptr, (mr_output){0}, (mr_output){0}, nullptr)                                \
    X(mr_loss_softmax_cross_entropy_, nullptr, (mr_output){0}, (mr_output){0}, nullptr)                                \
    X(mr_loss_sparse_softmax_cross_entropy_, nullptr, (mr_output){0}, (mr_output){0}, nullptr)                         \
    X(mr_loss_weighted_, nullptr, (mr_output){0}, nullptr)                                                             \
    X(mr_loss_regularization_, nullptr, nullptr)                                                                       \
    X(mr_loss_total_, nullptr, nullptr)                                                                                \
    X(mr_accuracy, nullptr, (mr_output){0}, (mr_output){0})                                                            \
    X(mr_sampled_softmax_loss_, nullptr, (mr_variables){0}, (mr_variables){0}, (mr_output){0}, (mr_output){0},         \
      nullptr)                                                                                                         \
    X(mr_nce_loss_, nullptr, (mr_variables){0}, (mr_variables){0}, (mr_output){0}, (mr_output){0}, nullptr)            \
    X(mr_sequence_loss_, nullptr, (mr_output){0}, (mr_output){0}, (mr_output){0}, nullptr)                             \
    X(mr_ctc_loss_, nullptr, (mr_sparse_output){0}, (mr_output){0}, (mr_output){0}, nullptr)                           \
    X(mr_ctc_greedy_decoder_, nullptr, (mr_output){0}, (mr_output){0}, nullptr, nullptr)                               \
    X(mr_ctc_beam_search_decoder_, nullptr, (mr_output){0}, (mr_output){0}, nullptr, nullptr)                          \
    X(mr_metric_mean_, nullptr, (mr_output){0}, nullptr)                                                               \
    X(mr_metric_mean_tensor_, nullptr, (mr_output){0}, nullptr)                                                        \
    X(mr_metric_percentage_below_, nullptr, (mr_output){0}, 0, nullptr)                                                \
    X(mr_metric_accuracy_, nullptr, (mr_output){0}, (mr_output){0}, nullptr)                                           \
    X(mr_metric_mean_absolute_error_, nullptr, (mr_output){0}, (mr_output){0}, nullptr)                                \
    X(mr_metric_mean_squared_error_, nullptr, (mr_output){0}, (mr_output){0}, nullptr)                                 \
    X(mr_metric_root_mean_squared_error_, nullptr, (mr_output){0}, (mr_output){0}, nullptr)                            \
    X(mr_metric_true_positives_, nullptr, (mr_output){0}, (mr_output){0}, nullptr)                                     \
    X(mr_metric_true_negatives_, nullptr, (mr_output){0}, (mr_output){0}, nullptr)                                     \
    X(mr_metric_false_positives_, nullptr, (mr_output){0}, (mr_output){0}, nullptr)                                    \
    X(mr_metric_false_negatives_, nullptr, (mr_output){0}, (mr_output){0}, nullptr)                                    \
    X(mr_metric_precision_, nullptr, (mr_output){0}, (mr_output){0}, nullptr)                                          \
    X(mr_metric_recall_, nullptr, (mr_output){0}, (mr_output){0}, nullptr)                                             \
    X(mr_metric_auc_, nullptr, (mr_output){0}, (mr_output){0}, nullptr)                                                \
    X(mr_metric_mean_relative_error_, nullptr, (mr_output){0}, (mr_output){0}, (mr_output){0}, nullptr)                \
    X(mr_metric_mean_cosine_distance_, nullptr, (mr_output){0}, (mr_output){0}, 0, nullptr)                            \
    X(mr_metric_mean_iou_, nullptr, (mr_output){0}, (mr_output){0}, 0, nullptr)                                        \
    X(mr_metric_mean_per_class_accuracy_, nullptr, (mr_output){0}, (mr_output){0}, 0, nullptr)                         \
    X(mr_metric_precision_at_thresholds_, nullptr, (mr_output){0}, (mr_output){0}, (mr_floats){0}, nullptr)            \
    X(mr_metric_recall_at_thresholds_, nullptr, (mr_output){0}, (mr_output){0}, (mr_floats){0}, nullptr)               \
    X(mr_metric_true_positives_at_thresholds_, nullptr, (mr_output){0}, (mr_output){0}, (mr_floats){0}, nullptr)       \
    X(mr_metric_true_negatives_at_thresholds_, nullptr, (mr_output){0}, (mr_output){0}, (mr_floats){0}, nullptr)       \
    X(mr_metric_false_positives_at_thresholds_, nullptr, (mr_output){0}, (mr_output){0}, (mr_floats){0}, nullptr)      \
    X(mr_metric_false_negatives_at_thresholds_, nullptr, (mr_output){0}, (mr_output){0}, (mr_floats){0}, nullptr)      \
    X(mr_metric_sensitivity_at_specificity_, nullptr, (mr_output){0}, (mr_output){0}, 0, nullptr)                      \
    X(mr_metric_specificity_at_sensitivity_, nullptr, (mr_output){0}, (mr_output){0}, 0, nullptr)                      \
    X(mr_metric_recall_at_k_, nullptr, (mr_output){0}, (mr_output){0}, 0, nullptr)                                     \
    X(mr_metric_precision_at_k_, nullptr, (mr_output){0}, (mr_output){0}, 0, nullptr)                                  \
    X(mr_metric_recall_at_top_k_, nullptr, (mr_output){0}, (mr_output){0}, nullptr)                                    \
    X(mr_metric_precision_at_top_k_, nullptr, (mr_output){0}, (mr_output){0}, nullptr)                                 \
    X(mr_metric_average_precision_at_k_, nullptr, (mr_output){0}, (mr_output){0}, 0, nullptr)                          \
    X(mr_compute_gradients_, nullptr, (mr_output){0}, nullptr)                                                         \
    X(mr_optimizer_compute_gradients_, nullptr, nullptr, (mr_output){0}, nullptr)                                      \
    X(mr_apply_gradients, nullptr, nullptr, (mr_gradients_and_variables){0}, (mr_output){0})                           \
    X(mr_minimize_, nullptr, nullptr, (mr_output){0}, (mr_output){0}, nullptr)                                         \
    X(mr_optimizer_slot, nullptr, nullptr, (mr_variable){0}, nullptr)                                                  \
    X(mr_clip_by_norm_, nullptr, (mr_output){0}, 0, nullptr)                                                           \
    X(mr_clip_by_average_norm, nullptr, (mr_output){0}, 0)                                                             \
    X(mr_global_norm, nullptr, (mr_outputs){0})                                                                        \
    X(mr_clip_by_global_norm_, nullptr, (mr_gradients_and_variables){0}, 0, nullptr)                                   \
    X(mr_moving_average_, nullptr, nullptr, 0, nullptr, nullptr)                                                       \
    X(mr_moving_average_of_, nullptr, (mr_outputs){0}, nullptr, nullptr)                                               \
    X(mr_moving_average_variables_to_restore, nullptr, nullptr)                                                        \
    X(mr_global_step, nullptr)                                                                                         \
    X(mr_exponential_decay, nullptr, 0, (mr_output){0}, 0, 0, 0)                                                       \
    X(mr_cosine_decay, nullptr, 0, (mr_output){0}, 0, 0)                                                               \
    X(mr_natural_exp_decay, nullptr, 0, (mr_output){0}, 0, 0, 0)                                                       \
    X(mr_inverse_time_decay, nullptr, 0, (mr_output){0}, 0, 0, 0)                                                      \
    X(mr_polynomial_decay, nullptr, 0, (mr_output){0}, 0, 0, 0, 0)                                                     \
    X(mr_piecewise_constant, nullptr, (mr_output){0}, (mr_ints){0}, (mr_floats){0})                                    \
    X(mr_cosine_decay_restarts, nullptr, 0, (mr_output){0}, 0, 0, 0, 0)                                                \
    X(mr_linear_cosine_decay, nullptr, 0, (mr_output){0}, 0, 0, 0, 0)                                                  \
    X(mr_noisy_linear_cosine_decay_, nullptr, 0, (mr_output){0}, 0, nullptr)                                           \
    X(mr_exponential_decay_with, nullptr, 0, (mr_output){0}, 0, 0, 0, nullptr)                                         \
    X(mr_natural_exp_decay_with, nullptr, 0, (mr_output){0}, 0, 0, 0, nullptr)                                         \
    X(mr_inverse_time_decay_with, nullptr, 0, (mr_output){0}, 0, 0, 0, nullptr)                                        \
    X(mr_polynomial_decay_with, nullptr, 0, (mr_output){0}, 0, 0, 0, 0, nullptr)                                       \
    X(mr_cosine_decay_with, nullptr, 0, (mr_output){0}, 0, 0, nullptr)                                                 \
    X(mr_cosine_decay_restarts_with, nullptr, 0, (mr_output){0}, 0, 0, 0, 0, nullptr)                                  \
    X(mr_linear_cosine_decay_with, nullptr, 0, (mr_output){0}, 0, 0, 0, 0, nullptr)                                    \
    X(mr_piecewise_constant_with, nullptr, (mr_output){0}, (mr_ints){0}, (mr_floats){0}, nullptr)                      \
    X(mr_moving_average_optimizer_, nullptr, nullptr, nullptr)                                                         \
    X(mr_swapping_saver_, nullptr, nullptr, nullptr)                                                                   \
    X(mr_sync_replicas_optimizer_, nullptr, nullptr, nullptr)                                                          \
    X(mr_sync_replicas_nodes_of, nullptr, nullptr)                                                                     \
    X(mr_sync_replicas_init_tokens, nullptr, nullptr, 0)                                                               \
    X(mr_sync_replicas_hook, nullptr, nullptr, 0, 0)                                                                   \
    X(mr_loss_scale_optimizer_, nullptr, nullptr, nullptr)                                                             \
    X(mr_loss_scale, nullptr, nullptr)                                                                                 \
    X(mr_summary_scalar_, nullptr, nullptr, (mr_output){0}, nullptr)                                                   \
    X(mr_summary_histogram_, nullptr, nullptr, (mr_output){0}, nullptr)                                                \
    X(mr_summary_image_, nullptr, nullptr, (mr_output){0}, 0, nullptr)                                                 \
    X(mr_summary_audio_, nullptr, nullptr, (mr_output){0}, (mr_output){0}, nullptr)                                    \
    X(mr_summary_text_, nullptr, nullptr, (mr_output){0}, nullptr)                                                     \
    X(mr_summary_tensor_, nullptr, nullptr, (mr_output){0}, nullptr)                                                   \
    X(mr_summary_pr_curve_, nullptr, nullptr, (mr_output){0}, (mr_output){0}, nullptr)                                 \
    X(mr_summary_merge_, nullptr, (mr_outputs){0}, nullptr)                                                            \
    X(mr_summary_merge_all_, nullptr, nullptr)                                                                         \
    X(mr_rnn_cell_zero_state, nullptr, nullptr, (mr_output){0}, (mr_dtype){0}, nullptr)                                \
    X(mr_rnn_cell_call, nullptr, nullptr, (mr_output){0}, nullptr, nullptr)                                            \
    X(mr_basic_rnn_cell_, nullptr, 0, nullptr)                                                                         \
    X(mr_gru_cell_, nullptr, 0, nullptr)                                                                               \
    X(mr_basic_lstm_cell_, nullptr, 0, nullptr)                                                                        \
    X(mr_lstm_cell_, nullptr, 0, nullptr)                                                                              \
    X(mr_layer_norm_lstm_cell_, nullptr, 0, nullptr)                                                                   \
    X(mr_rnn_cell_new, nullptr, nullptr, nullptr)                                                                      \
    X(mr_multi_rnn_cell, nullptr, (mr_rnn_cells){0})                                                                   \
    X(mr_dropout_wrapper_, nullptr, nullptr, nullptr)                                                                  \
    X(mr_residual_wrapper, nullptr, nullptr)                                                                           \
    X(mr_residual_wrapper_with, nullptr, nullptr, nullptr)                                                             \
    X(mr_device_wrapper, nullptr, nullptr, nullptr)                                                                    \
    X(mr_dynamic_rnn_, nullptr, nullptr, (mr_output){0}, nullptr, nullptr)                                             \
    X(mr_static_rnn_, nullptr, nullptr, (mr_outputs){0}, nullptr, nullptr, nullptr)                                    \
    X(mr_bidirectional_dynamic_rnn_, nullptr, nullptr, nullptr, (mr_output){0}, nullptr, nullptr, nullptr)             \
    X(mr_static_bidirectional_rnn_, nullptr, nullptr, nullptr, (mr_outputs){0}, nullptr, nullptr, nullptr)             \
    X(mr_saver_new_, nullptr, nullptr)                                                                                 \
    X(mr_saver_import, nullptr, nullptr, nullptr)                                                                      \
    X(mr_cond_begin_, nullptr, (mr_output){0}, nullptr)                                                                \
    X(mr_while_loop_begin_, nullptr, (mr_outputs){0}, nullptr, nullptr)                                                \
    X(mr_bahdanau_attention_, nullptr, 0, (mr_output){0}, nullptr)                                                     \
    X(mr_luong_attention_, nullptr, 0, (mr_output){0}, nullptr)                                                        \
    X(mr_activation_hardmax, nullptr, (mr_output){0})                                                                  \
    X(mr_attention_wrapper_, nullptr, nullptr, nullptr, nullptr)                                                       \
    X(mr_multi_attention_wrapper_, nullptr, nullptr, (mr_attentions){0}, nullptr)                                      \
    X(mr_training_helper_, nullptr, (mr_output){0}, (mr_output){0}, nullptr)                                           \
    X(mr_greedy_embedding_helper, nullptr, (mr_variables){0}, (mr_output){0}, 0)                                       \
    X(mr_sample_embedding_helper_, nullptr, (mr_variables){0}, (mr_output){0}, 0, nullptr)                             \
    X(mr_scheduled_embedding_training_helper_, nullptr, (mr_output){0}, (mr_output){0}, (mr_variables){0},             \
      (mr_output){0}, nullptr)                                                                                         \
    X(mr_scheduled_output_training_helper_, nullptr, (mr_output){0}, (mr_output){0}, (mr_output){0}, nullptr)          \
    X(mr_custom_helper, nullptr, nullptr, nullptr)                                                                     \
    X(mr_output_layer_new_, nullptr, nullptr)                                                                          \
    X(mr_basic_decoder_, nullptr, nullptr, nullptr, nullptr, nullptr)                                                  \
    X(mr_beam_search_decoder_, nullptr, nullptr, (mr_variables){0}, (mr_output){0}, 0, nullptr, 0, nullptr)            \
    X(mr_tile_batch, nullptr, (mr_output){0}, 0)                                                                       \
    X(mr_beam_gather_tree, nullptr, (mr_output){0}, (mr_output){0}, (mr_output){0}, 0)                                 \
    X(mr_dynamic_decode_, nullptr, nullptr, nullptr, nullptr)                                                          \
    X(mr_raw_rnn_, nullptr, nullptr, (mr_raw_rnn_loop){0}, nullptr, nullptr, nullptr)                                  \
    X(mr_add_queue_runner_, nullptr, (mr_output){0}, nullptr, 0, nullptr)                                              \
    X(mr_init_from_checkpoint, nullptr, nullptr, (mr_assignments){0}, nullptr)                                         \
    X(mr_warm_start, nullptr, nullptr, nullptr, nullptr)                                                               \
    X(mr_graph_iterator, nullptr, nullptr, nullptr, nullptr, nullptr)                                                  \
    X(mr_training_new, nullptr, nullptr, nullptr, nullptr)                                                             \
    X(mr_training_run, nullptr, nullptr, nullptr, nullptr)                                                             \
    X(mr_assert_compare_, nullptr, (mr_comparison){0}, (mr_output){0}, (mr_output){0}, nullptr)                        \
    X(mr_assert_sign_, nullptr, (mr_sign_kind){0}, (mr_output){0}, nullptr)                                            \
    X(mr_is_non_decreasing, nullptr, (mr_output){0})                                                                   \
    X(mr_is_strictly_increasing, nullptr, (mr_output){0})                                                              \
    X(mr_verify_all_finite, nullptr, (mr_output){0}, nullptr)                                                          \
    X(mr_assert_rank_in_, nullptr, (mr_output){0}, (mr_ints){0}, nullptr)                                              \
    X(mr_assert_rank_, nullptr, (mr_output){0}, 0, nullptr)                                                            \
    X(mr_assert_rank_at_least_, nullptr, (mr_output){0}, 0, nullptr)                                                   \
    X(mr_graph_push_default, nullptr)                                                                                  \
    X(mr_graph_pop_default, nullptr)                                                                                   \
    X(mr_graph_status, nullptr, nullptr)                                                                               \
    X(mr_graph_push_scope, nullptr, nullptr)                                                                           \
    X(mr_graph_pop_scope, nullptr)                                                                                     \
    X(mr_graph_scope, nullptr)                                                                                         \
    X(mr_graph_unique_name, nullptr, nullptr)                                                                          \
    X(mr_graph_push_device, nullptr, nullptr)                                                                          \
    X(mr_graph_pop_device, nullptr)                                                                                    \
    X(mr_graph_push_device_function, nullptr, nullptr, nullptr)                                                        \
    X(mr_graph_push_colocation, nullptr, nullptr)                                                                      \
    X(mr_graph_pop_colocation, nullptr)                                                                                \
    X(mr_graph_finalize, nullptr)                                                                                      \
    X(mr_graph_is_finalized, nullptr)                                                                                  \
    X(mr_graph_push_control_dependencies, nullptr, nullptr, 0)                                                         \
    X(mr_graph_pop_control_dependencies, nullptr)                                                                      \
    X(mr_graph_set_seed, nullptr, 0)                                                                                   \
    X(mr_graph_find, nullptr, nullptr)                                                                                 \
    X(mr_graph_find_output, nullptr, nullptr)                                                                          \
    X(mr_graph_node_count, nullptr)                                                                                    \
    X(mr_graph_node, nullptr, 0)                                                                                       \
    X(mr_node_begin, nullptr, nullptr, nullptr)                                                                        \
    X(mr_constant, nullptr, nullptr, nullptr)                                                                          \
    X(mr_constant_float, nullptr, 0)                                                                                   \
    X(mr_constant_int32, nullptr, 0)                                                                                   \
    X(mr_constant_int64, nullptr, 0)                                                                                   \
    X(mr_constant_bool, nullptr, 0)                                                                                    \
    X(mr_constant_string, nullptr, nullptr)                                                                            \
    X(mr_constant_floats, nullptr, (mr_shape){0}, nullptr, nullptr)                                                    \
    X(mr_constant_int32s, nullptr, (mr_shape){0}, nullptr, nullptr)                                                    \
    X(mr_constant_ints, nullptr, (mr_ints){0})                                                                         \
    X(mr_variable_new_, nullptr, nullptr, (mr_output){0}, nullptr)                                                     \
    X(mr_graph_variable_count, nullptr, nullptr)                                                                       \
    X(mr_graph_variable, nullptr, nullptr, 0)                                                                          \
    X(mr_graph_add_variable_to_collection, nullptr, nullptr, (mr_variable){0})                                         \
    X(mr_initialize_variables, nullptr, nullptr, nullptr)                                                              \
    X(mr_group, nullptr, nullptr, 0, nullptr)                                                                          \
    X(mr_graph_add_to_collection, nullptr, nullptr, (mr_output){0})                                                    \
    X(mr_graph_collection_count, nullptr, nullptr)                                                                     \
    X(mr_graph_collection_item, nullptr, nullptr, 0)                                                                   \
    X(mr_graph_collection_key_count, nullptr)                                                                          \
    X(mr_graph_collection_key, nullptr, 0)                                                                             \
    X(mr_graph_clear_collection, nullptr, nullptr)                                                                     \
    X(mr_add_check_numerics_ops, nullptr)                                                                              \
    X(mr_gradients, nullptr, (mr_outputs){0}, (mr_outputs){0}, nullptr, nullptr)                                       \
    X(mr_gradient_rows, nullptr, (mr_output){0}, nullptr, nullptr)                                                     \
    X(mr_graph_push_gradient_override, nullptr, nullptr, nullptr)                                                      \
    X(mr_graph_pop_gradient_override, nullptr)                                                                         \
    X(mr_graph_export, nullptr, nullptr, nullptr)                                                                      \
    X(mr_graph_import_with, nullptr, nullptr, 0, nullptr, nullptr)                                                     \
    X(mr_graph_export_meta, nullptr, nullptr, nullptr)                                                                 \
    X(mr_graph_import_meta, nullptr, nullptr, 0, nullptr)                                                              \
    X(mr_graph_export_meta_with, nullptr, nullptr, nullptr, nullptr)                                                   \
    X(mr_graph_import_meta_with, nullptr, nullptr, 0, nullptr, nullptr)

#define DEFINE(name, ...)                                                                                              \
    static void call_##name(void)                                                                                      \
    {                                                                                                                  \
        (void)name(__VA_ARGS__);                                                                                       \
    }
CALLS(DEFINE)

static bool crashes(void (*call)(void))
{
    int status = 0;
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        call();
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

TEST(null_graphs_do_not_crash)
{
#define ENTRY(name, ...) {#name, call_##name},
    static const struct {
        const char *name;
        void (*call)(void);
    } calls[] = {CALLS(ENTRY)};
    int32_t count = 0;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (!crashes(calls[i].call)) continue;
        printf("%s crashes\n", calls[i].name);
        count++;
    }
    CHECK_EQ(count, 0);
}
